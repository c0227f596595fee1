"""The warm worker: one process that has imported and parsed everything, and forks each run from itself."""
