"""Public ids: a prefix that names the kind, then 26 characters that sort by time of creation.

Integer keys of tables do not go here; the database makes them.
"""

import re
import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_RANDOM_BITS = 80
_BODY = re.compile(rf"[{_ALPHABET}]{{26}}")

_lock = threading.Lock()
_last = 0


def new_id(prefix: str) -> str:
    """Return a new id: `prefix` (such as 'tok_'), 48 bits of milliseconds, 80 random bits.

    Ids of one process are strictly increasing, also within a millisecond; ids of several processes
    sort by their clocks.
    """
    global _last
    drawn = (time.time_ns() // 1_000_000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    with _lock:
        _last = number = max(drawn, _last + 1)
    return prefix + "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def pattern_of(prefix: str) -> str:
    """Return the pattern (JSON Schema) of ids with this prefix."""
    return f"^{prefix}{_BODY.pattern}$"


def is_id(prefix: str, text: str) -> bool:
    """Say whether a text has the form of an id with this prefix, so that it may be looked up at all."""
    return text.startswith(prefix) and _BODY.fullmatch(text[len(prefix) :]) is not None
