"""The media types of answers, and the sets of them that kinds of operations offer."""

JSON = "application/json"
CSV = "text/csv"
NDJSON = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
PROBLEM = "application/problem+json"
HTML = "text/html"
FORM = "application/x-www-form-urlencoded"

JSON_ONLY = (JSON,)
JSON_OR_HTML = (JSON, HTML)
FILES = (CSV, NDJSON, PARQUET)
"""Formats with all rows in one answer."""
TABULAR = (JSON, *FILES)

EXTENSIONS = {CSV: "csv", NDJSON: "ndjson", PARQUET: "parquet"}
"""Extensions of file names."""
