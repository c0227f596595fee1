"""Made-up raw rows of one network: its ledger, its prices, and both with what tenants hold."""
