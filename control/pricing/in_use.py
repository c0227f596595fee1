"""Names of the users of an object that cannot be removed, for errors."""

from collections.abc import Sequence

_MOST_NAMED = 10


def named(users: Sequence[str]) -> str:
    """Return users as one text: the first ten, and how many more there are."""
    shown = list(users[:_MOST_NAMED])
    if len(users) > len(shown):
        shown.append(f"{len(users) - len(shown)} more")
    return ", ".join(shown)
