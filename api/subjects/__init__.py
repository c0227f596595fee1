"""Code shared by tokens and wallets: lookup, moments, intervals, coverage."""
