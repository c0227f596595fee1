"""The console command `ledgermart`. Thin: it starts what `control`, `pipelines` and `api` hold."""
