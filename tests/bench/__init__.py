"""Benchmarks: measured and printed with the machine; no timing decides anything."""
