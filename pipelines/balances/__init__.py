"""Readings of balances and supplies: what is due, what was read, which differences remain."""
