"""The media types of answers, and which of them kinds of operations offer."""

JSON = "application/json"
CSV = "text/csv"
NDJSON = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
PROBLEM = "application/problem+json"

JSON_ONLY = (JSON,)
TABULAR = (JSON, CSV, NDJSON, PARQUET)
