"""Tokens: configuration, cap table, holders, capitalization."""
