"""Fingerprints of what was read, to hold one provider's answer against another's."""

from dataclasses import dataclass
from hashlib import sha256

import polars as pl

_COLUMNS = (
    "block_hash",
    "log_index",
    "transaction_hash",
    "token_address",
    "from_address",
    "to_address",
    "amount_raw",
)


@dataclass(frozen=True)
class TransferDigest:
    """How many transfers there are, and the SHA-256 (hex) of what they say, in whatever order they came."""

    count: int
    hash: str


def digest_transfers(rows: pl.DataFrame) -> TransferDigest:
    """Fingerprint transfers: equal for the same rows in any order, different where any of them differs.

    Args:
        rows: with the columns of raw.token_transfers; others than those that the event has do not count.
    """
    # All values are hex or digits: nothing in them is quoted, and lines end where rows do.
    text = rows.select(_COLUMNS).sort(_COLUMNS).write_csv(include_header=False)
    return TransferDigest(rows.height, sha256(text.encode()).hexdigest())
