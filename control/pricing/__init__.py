"""Pricing as tenants configure it: items, sources, pairs, manual prices, and what follows from them without a source."""
