"""Recorded blocks of Ethereum mainnet, and lists of their transfers."""

import csv
from pathlib import Path

FOLDER = Path(__file__).parent

Transfer = tuple[int, int, str, str, str, str, int]
"""(block, log index, transaction hash, token, from, to, value)."""


def listed_transfers(name: str = "transfers.csv") -> list[Transfer]:
    """Return the transfers of a list, sorted."""
    with (FOLDER / name).open(encoding="utf-8") as lines:
        return sorted(
            (int(row["block_number"]), int(row["log_index"]), row["transaction_hash"], row["token"], row["from"],
             row["to"], int(row["value_raw"]))
            for row in csv.DictReader(lines)
        )  # fmt: skip
