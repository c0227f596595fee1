"""Giving transfers to a lake, with its catalogue in PostgreSQL and its files in an S3 server: processor seconds.

PostgreSQL and the S3 server share the machine; their processor time is not counted. The transfers are made up, and are
in the warehouse already. `history` measures how they get there.
"""

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest import mock

import duckdb

from control.networks.definitions import load_networks
from control.settings import load_settings
from pipelines.lake.giving import give
from pipelines.lake.tables import open_lake
from pipelines.raw.database import open_warehouse
from tests.bench.measurement import Clock, Measurement
from tests.bench.transfers import NETWORK, make_warehouse
from tests.datasets.object_store import ObjectStore
from tests.unit.control.postgres import new_database, start_postgres, stop_postgres
from warehouse.lakes import Lake

_ROWS = 1_000_000
_REPEAT = 3
_COMMITS = 50
_BUCKET = "facts"


def run(folder: Path, repeat: int | None, note: Callable[[str], None], measured: list[Measurement]) -> None:
    """Make a warehouse once, then give its transfers to a new lake `repeat` times."""
    note(f"lake: making {_ROWS:,} transfers")
    path = folder / "lake" / "warehouse"
    make_warehouse(path, _ROWS)
    with ExitStack() as stack:
        server = start_postgres()
        stack.callback(stop_postgres, server)
        objects = stack.enter_context(ObjectStore())
        objects.make_bucket(_BUCKET)
        stack.enter_context(mock.patch.dict(os.environ, objects.variables))
        for number in range(repeat or _REPEAT):
            note(f"lake: run {number + 1}")
            with new_database(server["url"], f"lake{number}") as url, open_warehouse(path) as connection:
                _settle_all(connection)
                measured += _measure(connection, folder, url, number)


def _settle_all(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("delete from raw.lake_states")
    connection.execute("delete from raw.known_chains")
    newest = "select network, max(block_number) from raw.blocks group by network"
    connection.execute(f"insert into raw.known_chains (network, settled_number) {newest}")


def _measure(connection: duckdb.DuckDBPyConnection, folder: Path, url: str, number: int) -> list[Measurement]:
    variables = {
        "LEDGERMART_DATA_DIR": str(folder / "lake"),
        "LEDGERMART_LAKE": f"ducklake:postgres:{url}",
        "LEDGERMART_LAKE_DATA": f"s3://{_BUCKET}/{number}",
    }
    settings = load_settings(variables)
    network = load_networks(settings.networks_file, variables)[NETWORK]
    lake = open_lake(settings, network)
    assert lake is not None
    clock = Clock()
    rows = give(connection, network, lake, 60)
    spent = clock.read()
    if rows < _ROWS:
        raise RuntimeError(f"{rows:,} rows were given, not {_ROWS:,}")
    return [
        Measurement("lake: giving", "CPU per 100,000 transfers", "s", spent["cpu"] / rows * 100_000),
        Measurement("lake: giving", "transfers per second", "rows/s", rows / spent["wall"]),
        Measurement("lake: commits of one header", "commits per second", "1/s", _commits_per_second(lake), "10"),
    ]


def _commits_per_second(lake: Lake) -> float:
    with lake.open() as opened:
        clock = Clock()
        for number in range(_COMMITS):
            header = f"select * replace (-{number} as block_number) from lake.blocks limit 1"
            opened.commit(partial(opened.run, f"insert into lake.blocks {header}"))
        return _COMMITS / clock.read()["wall"]
