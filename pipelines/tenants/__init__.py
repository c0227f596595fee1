"""Configuration of tenants, and the ranges and versions that each of them may see."""
