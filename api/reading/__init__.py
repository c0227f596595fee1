"""Answers made from named queries: moments, coverage, activities, cap tables, balances."""
