"""Read chain data as frames of rows: clients and pure decoding, one folder per family of networks.

No Dagster and no DuckDB here: other packages of `pipelines` run the cycles and store the rows.
"""
