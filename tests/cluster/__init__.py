"""Several machines: builders, API nodes and readers that share PostgreSQL, a store of objects and lakes."""
