"""The warehouse's raw tables: how they are opened, written and read. Knows no source and no Dagster."""
