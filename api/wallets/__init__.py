"""Wallets: configuration, balances, value."""
