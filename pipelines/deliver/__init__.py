"""Output of the pipeline: exports, sandboxes, progress, states of operations. No collecting module imports it."""
