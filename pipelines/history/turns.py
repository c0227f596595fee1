"""Turns of history: which network and which rows were served last, from one slice to the next."""

from collections.abc import Mapping

import duckdb

from control.networks.definitions import Network
from pipelines.raw.database import transaction


def in_turn(connection: duckdb.DuckDBPyConnection, networks: Mapping[str, Network]) -> list[Network]:
    """Return the networks, the one that waits longest for its turn first."""
    turns = dict(connection.execute("select network, turn from raw.history_turns").fetchall())
    return sorted(networks.values(), key=lambda network: turns.get(network.name, -1))


def last_served(connection: duckdb.DuckDBPyConnection, network: str) -> str:
    """Return the key of the rows that were read last, from the order of `record_turn`; empty before the first."""
    row = connection.execute("select served from raw.history_turns where network = ?", [network]).fetchone()
    return "" if row is None else str(row[0])


def record_turn(connection: duckdb.DuckDBPyConnection, network: str, served: str | None = None) -> None:
    """Record that a network has its turn.

    Args:
        served: key of the rows that are read; None: that of the last turn remains.
    """
    kept = last_served(connection, network) if served is None else served
    with transaction(connection):
        connection.execute("delete from raw.history_turns where network = ?", [network])
        connection.execute(
            "insert into raw.history_turns select ?, coalesce(max(turn), 0) + 1, ? from raw.history_turns",
            [network, kept],
        )
