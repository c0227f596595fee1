"""The pipeline: extraction, loading, transformation and publishing. The only writer of the warehouse."""
