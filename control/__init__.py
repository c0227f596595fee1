"""The control store: what tenants configured, and the rules about it."""
