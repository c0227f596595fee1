"""Configuration of tenants, and what each of them may see."""
