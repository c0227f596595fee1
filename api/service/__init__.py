"""The service itself: health, audit log, quotas."""
