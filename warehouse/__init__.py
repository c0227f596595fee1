"""The warehouse's files: their lock, opening them, published versions. Knows no table and no Dagster."""
