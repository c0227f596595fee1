"""What leaves the pipeline: exports, sandboxes, progress, states of operations. Nothing that collects knows it."""
