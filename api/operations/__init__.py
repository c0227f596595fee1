"""Long-running operations: their state and their estimates."""
