"""Prices: market lists, the routes of pairs, polling and discovery; decides what is asked of which source, and when."""
