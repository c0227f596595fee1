"""Dagster definitions: assets, checks, jobs, sensors and schedules, one module per concern. Bodies are a few lines."""
