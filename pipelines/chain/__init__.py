"""Stored facts of the chain: headers, rows, coverage, reorganisations and second readings."""
