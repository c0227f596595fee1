"""Structs of answers and requests about prices."""
