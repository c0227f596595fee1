"""Embedded reports: links, tokens, pages, and the data of the pages."""
