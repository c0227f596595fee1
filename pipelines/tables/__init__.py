"""The raw tables, each described once.

From here derive the definitions in the warehouse, the schemas of the frames that fill them, and dbt's sources.
Every room of the pipeline may read this one; it knows none of them.
"""
