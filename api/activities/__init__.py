"""Activities of tokens and wallets."""
