"""Chains of transactions that spend outputs: Bitcoin, Litecoin and others with the same blocks."""
