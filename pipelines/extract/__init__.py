"""What chains say, as frames of rows: clients and pure decoding, one folder per family of networks.

No Dagster and no DuckDB here: orchestration and storage are the business of `pipelines.defs` and `pipelines.load`.
"""
