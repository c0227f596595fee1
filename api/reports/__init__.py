"""Embedded reports: links and tokens, the pages, and what the pages show."""
