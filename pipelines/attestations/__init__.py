"""Attestations of balances at past blocks."""
