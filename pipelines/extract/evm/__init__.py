"""Networks that speak Ethereum's JSON-RPC."""
