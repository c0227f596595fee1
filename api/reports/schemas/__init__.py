"""Structs of answers and requests about reports."""
