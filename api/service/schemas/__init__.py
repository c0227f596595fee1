"""Structs of answers about the service."""
