"""Errors of files."""

from pipelines.extract.errors import ExtractError

CHANGED = "it changed while it was read"
"""A reason for `FileRefused`."""


class FileRefused(Exception):
    """A file that must not be used until it changes; the message says why, in words that tenants may read."""


class FilesUnreadable(ExtractError):
    """Files cannot be read for now: the store does not answer, or refuses the credentials."""
