"""Readings of balances and supplies: pending reads, stored readings, and remaining differences."""
