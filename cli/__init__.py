"""The console command `ledgermart`. Thin: `control`, `pipelines` and `api` do the work."""
