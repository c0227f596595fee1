"""Moves of tenants between the warehouses of two shards: the rows to take along, their import, and their removal."""
