"""History requests."""
