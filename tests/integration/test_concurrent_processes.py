"""Cycles, the API under load, a BI tool under load and two analysts on one installation, without lock errors.

All of them are real processes with real files; only the chain is a local node. Every answer must be consistent: a cap
table's quantities and the remainder add up to the supply, and versions never decrease.
"""

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests import CHECKOUT
from tests.chain.node import AnvilNode
from tests.chain.process import free_port, stop_process, tied_to_parent
from tests.chain.world import Token, World
from tests.e2e.client import ApiClient
from tests.integration.harness import LEDGERMART, Service
from tests.integration.warm_processes import run_forked
from tests.oracles.node import instant
from tests.waiting import eventually

# Pause between two queries of a reader: enough load to disturb others, but part of two cores stays free. The short test
# pauses longer, so that its cycles and builds end sooner.
_PAUSE_SECONDS = 0.02
_LONG_PAUSE_SECONDS = 0.2
# One statement reads one version, so its numbers must be consistent.
_CAP_TABLE = """
    select
        (select version from marts.publication) as version,
        tokens.holder_count,
        tokens.total_supply_raw::varchar,
        summaries.unattributed_raw::varchar,
        (select count(*) from marts.cap_tables as c where c.subject_key = tokens.subject_key),
        (select sum(quantity_raw)::varchar from marts.cap_tables as c where c.subject_key = tokens.subject_key)
    from marts.tokens as tokens
    inner join marts.cap_table_summaries as summaries on tokens.subject_key = summaries.subject_key
"""


class ConcurrentTasks:
    """Tasks that repeat until each has run its minimal number of times, or one has failed."""

    def __init__(self, enough: dict[str, int]) -> None:
        self.done: Counter[str] = Counter()
        self.failures: list[str] = []
        self._enough = enough

    @property
    def is_over(self) -> bool:
        """True if all tasks should stop."""
        return bool(self.failures) or all(self.done[who] >= count for who, count in self._enough.items())

    def run(self, tasks: dict[str, Callable[[], None]]) -> None:
        """Run every task in its own thread until `is_over`; analysts stop after their minimal number of builds."""
        threads = [threading.Thread(target=self._repeat, args=task, name=task[0]) for task in tasks.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _repeat(self, who: str, task: Callable[[], None]) -> None:
        while not self.is_over and not (isinstance(task, Analyst) and self.done[who] >= self._enough[who]):
            try:
                task()
            except Exception as error:  # noqa: BLE001 - the test collects all errors
                self.failures.append(f"{who}: {type(error).__name__}: {error}")
            else:
                self.done[who] += 1


def output(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the JSON output of a command.

    Raises:
        AssertionError: the command failed; the message is the end of its output.
    """
    assert done.returncode == 0, f"{done.args} exited with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}"
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


@contextmanager
def api(service: Service) -> Iterator[str]:
    """Run the API as a separate process; yield its URL."""
    port = free_port()
    process = subprocess.Popen(
        tied_to_parent([str(LEDGERMART), "api", "--port", str(port)], "TERM"),
        env=service.environment(LEDGERMART_RATE_LIMIT_PER_MINUTE="10000000"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        with ApiClient(url) as client:
            eventually(client.is_ready, "the API is ready")
        yield url
    finally:
        stop_process(process, grace_seconds=20)


class Cycles:
    """The pipeline: one cycle after the other, each with new blocks."""

    def __init__(self, service: Service, world: World, token: Token) -> None:
        self._service, self._world, self._token = service, world, token

    def __call__(self) -> None:
        """Mine a block with transfers, and run a cycle."""
        self._world.transfer_many(5, [self._token], per_block=5)
        head = self._world.node.head()
        found = output(self._service.ledgermart("cycle", "--json"))
        assert found["networks"]["local"]["collectedTo"] == head
        assert found["published"]["isNew"]


class BiTool:
    """A BI tool that opens the stable file name again for each query."""

    def __init__(self, path: Path, pause: float) -> None:
        self._path, self._pause, self._version = path, pause, 0

    def __call__(self) -> None:
        """Open the file, run one query, close it."""
        time.sleep(self._pause)
        with duckdb.connect(str(self._path), read_only=True) as connection:
            ((version, holders, supply, rest, rows, held),) = connection.execute(_CAP_TABLE).fetchall()
        assert version >= self._version
        assert holders == rows
        assert int(supply) == int(rest) + int(held)
        self._version = version


class ApiReader:
    """A client of the API that reads cap table and activities."""

    def __init__(self, url: str, key: str, token_id: str, pause: float) -> None:
        self._client, self._path, self._pause = ApiClient(url, key), f"/v1/tokens/{token_id}", pause
        self._version = 0

    def __call__(self) -> None:
        """Read all holders of one version, and a page of activities."""
        time.sleep(self._pause)
        pages = list(self._client.pages(f"{self._path}/cap-table", limit=3))
        rows = [row for page in pages for row in page["data"]]
        head: dict[str, Any] = pages[0]
        held = sum(int(row["quantityRaw"]) for row in rows)
        supply, rest = (Decimal(text).scaleb(18) for text in (head["totalSupply"], head["unattributed"]["quantity"]))
        assert len(rows) == head["holderCount"], f"{len(rows)} rows of {head['holderCount']}"
        assert held + rest == supply
        assert head["asOf"]["dataVersion"] >= self._version
        self._version = head["asOf"]["dataVersion"]
        assert self._client.get(f"{self._path}/activities", limit=5)["data"]


def _dbt(*arguments: str) -> None:
    """Run dbt as its command does, over the stores in the environment."""
    from dbt.cli.main import dbtRunner

    done = dbtRunner().invoke(list(arguments))
    if not done.success:
        raise SystemExit(done.exception or 1)


class Analyst:
    """An analyst who refreshes a sandbox and builds marts in it."""

    def __init__(self, service: Service, name: str) -> None:
        self._service, self._name = service, name
        self._folder = service.settings.data_dir / "sandboxes" / name

    def __call__(self) -> None:
        """Refresh the sandbox, build, and compare with the published marts."""
        arguments = ["sandbox", "--name", self._name, "--json", *(["--refresh"] if self._folder.exists() else [])]
        made = output(self._service.ledgermart(*arguments))
        built = run_forked(
            _dbt,
            ("build", "--select", "balance_changes", "token_positions+", "--exclude-resource-type", "unit_test"),
            {**self._service.environment(), **made["variables"]},
            CHECKOUT / "dbt_project",
        )
        assert built.returncode == 0, (built.stdout + built.stderr)[-1500:]
        with duckdb.connect() as connection:
            for name in ("marts_db", "published"):
                connection.execute(f"attach '{self._folder / name}.duckdb' as {name}_file (read_only)")
            for mart in ("balance_changes", "token_holders", "cap_tables", "cap_table_summaries"):
                own, published = (f"select * from {name}_file.marts.{mart}" for name in ("marts_db", "published"))
                different = f"({own} except all {published}) union all ({published} except all {own})"
                assert connection.execute(different).fetchall() == [], mart


@pytest.mark.ci
@pytest.mark.proof("cycles, readers and analysts run at once without an error of a lock")
@pytest.mark.parametrize(
    ("rounds", "pause"),
    [(1, _LONG_PAUSE_SECONDS), pytest.param(8, _PAUSE_SECONDS, marks=pytest.mark.release)],
)
def test_concurrent_processes_never_hit_a_lock(
    rounds: int, pause: float, node: AnvilNode, ready_service: Service
) -> None:
    service = ready_service
    world = World(node, wallet_count=8)
    gold = world.deploy_token("GOLD", 18)
    opening = world.distribute(gold, 10**18)
    service.point_at("local", node.url)
    tenant = service.tenant()
    token = service.token(tenant, gold.address, tracked_from=instant(node, opening))
    service.wallet(tenant, world.wallets[0], tracked_from=instant(node, opening))
    cycles = Cycles(service, world, gold)
    cycles()
    tasks = ConcurrentTasks(
        {"cycles": 2 * rounds, "first analyst": rounds, "second analyst": rounds, "BI tool": 100, "API client": 50}
    )
    with api(service) as url:
        tasks.run(
            {
                "cycles": cycles,
                "first analyst": Analyst(service, "first"),
                "second analyst": Analyst(service, "second"),
                "BI tool": BiTool(service.settings.serving_dir / "current.duckdb", pause),
                "API client": ApiReader(url, service.bearer(tenant), token.id, pause),
                "another API client": ApiReader(url, service.bearer(tenant), token.id, pause),
            }
        )
    assert tasks.failures == []
    assert tasks.done["cycles"] >= 2 * rounds
    assert min(tasks.done[who] for who in ("first analyst", "second analyst")) >= rounds
    assert (tasks.done["BI tool"] >= 100, tasks.done["API client"] >= 50) == (True, True), tasks.done
