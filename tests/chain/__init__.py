"""Local chains for tests and the demo: a real EVM node, contracts on it, and faults before it."""
