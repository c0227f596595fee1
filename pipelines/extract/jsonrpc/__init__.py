"""JSON-RPC over HTTP, for all families: sending, retries, fail-over, batches and limits of answers."""
