"""Pricing as tenants configure it: items and their symbols at sources, sources, pairs, prices by hand."""
