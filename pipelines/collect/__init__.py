"""One network's cycle: what is missing, fetched by `extract` and written by `load`. Knows no Dagster."""
