"""`make bench-quick`: count the statements of requests and of a cycle, and compare them with `bench/budgets.toml`.

The counts are equal on every machine. Exit code 1 if a count is above its ceiling, or if the file lacks a name or has
an unknown one.
"""

import argparse
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from pipelines.defs.project import run_dbt
from tests import CHECKOUT
from tests.bench.counting import counting
from tests.bench.quick_world import QuickWorld, TokenNode, address_of

_FILE = CHECKOUT / "bench" / "budgets.toml"
_HEADER = """\
# Ceilings of `make bench-quick`; `.venv/bin/python -m tests.bench.quick --write` stores the present counts.
# A commit that raises a ceiling says why.
"""
_DUCKDB, _CONTROL, _CYCLE = "DuckDB statements", "control statements", "cycle"
Counts = dict[str, dict[str, int]]


class Request(NamedTuple):
    """A request; `key` replaces the API key."""

    path: str
    body: Any = None
    key: str | None = None


def requests_of(world: QuickWorld) -> dict[str, Request]:
    """Return one request of each kind, by name."""
    token, wallet = f"/v1/tokens/{world.token}", f"/v1/wallets/{world.wallet}"
    hours = "from=2020-09-13T12:30:00Z&to=2020-09-13T13:00:00Z&interval=1h"
    with world.client() as client:
        cursor = client.get(f"{token}/cap-table").raise_for_status().json()["page"]["nextCursor"]
        link = client.get(f"/v1/reports/cap-table?tokenId={world.token}").raise_for_status().json()["reportUrl"]
    return {
        "cap table": Request(f"{token}/cap-table"),
        "cap table, second page": Request(f"{token}/cap-table?cursor={cursor}"),
        "cap table at a past block": Request(f"{token}/cap-table?asOf=block:150"),
        "embedded cap table": Request("/embed/data/cap-table/rows", key=link.partition("#t=")[2]),
        "activities of a token": Request(f"{token}/activities"),
        "market capitalization": Request(f"{token}/market-capitalization?{hours}"),
        "one token": Request(token),
        "tokens": Request("/v1/tokens"),
        "activities of a wallet": Request(f"{wallet}/activities"),
        "balances of a wallet": Request(f"{wallet}/balances"),
        "value history of a wallet": Request(f"{wallet}/value-history?{hours}"),
        "wallets, with totals": Request("/v1/wallets"),
        "create a wallet": Request("/v1/wallets", body={"ledger": "local", "ledgerId": address_of(9)}),
    }


def count_requests(world: QuickWorld) -> Counts:
    """Count each request as the first one of a process, which also opens the version."""
    counts: Counts = {_DUCKDB: {}, _CONTROL: {}}
    for name, request in requests_of(world).items():
        with world.client(request.key) as client, counting() as found:
            method = "GET" if request.body is None else "POST"
            client.request(method, request.path, json=request.body).raise_for_status()
        counts[_DUCKDB][name], counts[_CONTROL][name] = found["duckdb"], found["control"]
    return counts


def count_cycle(world: QuickWorld) -> dict[str, int]:
    """Count a cycle with 1,000 new transfers."""
    of_dbt: Counter[str] = Counter()

    def run_counted(*arguments: Any) -> list[Any]:
        with counting() as found:
            results = run_dbt(*arguments)
        of_dbt.update(found, nodes=len(results))
        return results

    world.node.mine(20, 50)
    with mock.patch("pipelines.defs.dbt.run_dbt", run_counted), counting() as found:
        world.cycle()
    return {
        "dbt nodes": of_dbt["nodes"],
        "DuckDB statements of dbt": of_dbt["duckdb"],
        "other DuckDB statements": found["duckdb"] - of_dbt["duckdb"],
        "rows written by dbt": of_dbt["rows"],
        "other rows written": found["rows"] - of_dbt["rows"],
        "control statements": found["control"],
    }


def count() -> Counts:
    """Make the world with a first cycle, and count."""
    with tempfile.TemporaryDirectory(prefix="ledgermart-bench-") as folder, TokenNode() as node:
        world = QuickWorld(Path(folder), node)
        node.mine(200, 2)
        world.cycle()
        of_cycle = count_cycle(world)
        counts = count_requests(world) | {_CYCLE: of_cycle}
        world.service.close()
    return counts


def judge(counts: Counts, ceilings: Mapping[str, Mapping[str, int]]) -> tuple[list[str], list[str]]:
    """Return the errors, and hints about ceilings that can be lowered."""
    errors, hints = [], []
    for section in {**counts, **ceilings}:
        found, allowed = counts.get(section, {}), ceilings.get(section, {})
        for name in {**found, **allowed}:
            if name not in allowed:
                errors.append(f"{name}, {section}: {found[name]:,}, without a ceiling in {_FILE.name}")
            elif name not in found:
                errors.append(f"{name}, {section}: a ceiling in {_FILE.name} without a count")
            elif found[name] > allowed[name]:
                errors.append(f"{name}, {section}: {found[name]:,}, above the ceiling of {allowed[name]:,}")
            elif found[name] < allowed[name]:
                hints.append(f"{name}, {section}: {found[name]:,}; lower the ceiling of {allowed[name]:,}")
    return errors, hints


def main() -> int:
    """Count and print; compare with the ceilings, or store them."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.quick", description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the present counts as ceilings")
    options = parser.parse_args()
    counts = count()
    print(f"{'first request of a process':30}{'DuckDB':>8}{'control':>8}")
    for name, number in counts[_DUCKDB].items():
        print(f"{name:30}{number:8,}{counts[_CONTROL][name]:8,}")
    print("\ncycle with 1,000 new transfers")
    print("\n".join(f"{name:30}{number:8,}" for name, number in counts[_CYCLE].items()))
    if options.write:
        lines = [
            line
            for section, found in counts.items()
            for line in ("", f'["{section}"]', *(f'"{name}" = {number}' for name, number in found.items()))
        ]
        _FILE.parent.mkdir(exist_ok=True)
        _FILE.write_text(_HEADER + "\n".join(lines) + "\n")
    errors, hints = judge(counts, tomllib.loads(_FILE.read_text()))
    print("\n".join(["", *hints, *errors]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
