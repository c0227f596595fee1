"""Prices, their pairs, sources and items."""
