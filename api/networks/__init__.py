"""Networks, ledgers and statistics."""
