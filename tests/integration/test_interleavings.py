"""Random interleavings of tracking, history, traffic, reorganisations and crashes, compared with a clean collection.

Hypothesis draws the steps, which run on a real node. Then the raw tables must equal one cycle over the same windows and
requests into an empty warehouse. Fewer examples, because dbt takes time, compare each tenant's marts with those of a
collection for that tenant alone.
"""

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, Self

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from control import operations
from control.history import BoundKind, parse_bound
from control.operations import OperationRow
from control.subjects import SubjectRow
from pipelines.raw.builds import record_publication, record_transform
from pipelines.raw.database import open_warehouse
from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.chain.world import World, call_data
from tests.integration.clean_collection import Rows, check_against_clean, collect_cleanly, small_parts
from tests.integration.dbt_runner import WITHOUT_VIEWS, Stores, build_over_nothing, open_marts, run_dbt
from tests.integration.harness import LocalNetwork, Service
from tests.integration.killing import Killed, ending_after
from tests.integration.transformed import content
from tests.oracles.node import instant

Step = tuple[Any, ...]

# Newest blocks that a reorganisation may replace: the node's final block is 64 blocks behind its head.
_TAIL = 50


def _kill() -> NoReturn:
    raise Killed


class Interleaving:
    """A node, a service with two tenants that share some addresses, and the steps to take.

    Args:
        has_marts: whether the first publication builds the marts; others are only recorded.
    """

    def __init__(self, has_marts: bool = False) -> None:
        self._stack = ExitStack()
        self._marts_due = has_marts

    def __enter__(self) -> Self:
        with self._stack as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self.node = stack.enter_context(AnvilNode(genesis_time=GENESIS_TIME))
            self._make_world()
            self.service = Service(self.folder, [LocalNetwork("local", self.node.url)])
            stack.callback(self.service.close)
            stack.enter_context(small_parts())
            self._stack = stack.pop_all()
        self.tenants = [self.service.tenant("one"), self.service.tenant("two")]
        self.subjects: list[SubjectRow] = []
        for tenant, tokens, wallets in ((0, (0, 1), (0, 1)), (1, (0,), (0, 2))):
            principal = self.tenants[tenant]
            self.subjects += [self.service.token(principal, self.tokens[number].address) for number in tokens]
            self.subjects += [self.service.wallet(principal, self.world.wallets[number]) for number in wallets]
        self.owners = {
            subject.subject_key: next(p for p in self.tenants if p.tenant_id == subject.tenant_id)
            for subject in self.subjects
        }
        self.operations: list[list[OperationRow]] = [[] for _ in self.subjects]
        for number in (0, 2, 4, 5):
            self.track(number, True, 0)
        self.traffic(3)
        self.cycle()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _make_world(self) -> None:
        self.world = World(self.node, wallet_count=5, gas_price=10**9)
        self.world.place_multicall()
        self.splitter = self.world.deploy("Splitter")
        self.tokens = [self.world.deploy_token("GOLD", 18), self.world.deploy_token("TIN", 0)]
        for token in self.tokens:
            self.world.distribute(token, 100_000)
        self.traffic(6)
        for _ in range(_TAIL + 10):
            self.world.mine()
        self.lowest = self.node.head()
        self.traffic(4)
        self.highest, self.moment = self.node.head(), self._now(0)

    def _now(self, seconds: int) -> datetime:
        return datetime.fromtimestamp(self.node.block_time(self.node.head()) + seconds, UTC)

    def _block(self, percent: int) -> int:
        return self.node.head() * percent // 100

    # Steps

    def traffic(self, blocks: int) -> None:
        """Mine blocks with transfers, payments and payments inside calls; some blocks are empty."""
        for _ in range(blocks):
            payer, payee, other = self.world.random.sample(self.world.wallets, 3)
            if self.world.random.random() < 0.7:
                self.world.submit(payer, payee, value=self.world.random.randrange(1, 10**18))
                function = self.world.random.choice(["split", "attempt_split", "split_and_revert"])
                value = self.world.random.randrange(1, 10**18)
                self.world.submit(
                    other, self.splitter, call_data("Splitter", function, [payer, payee, other]), value=value
                )
                self.world.transfer_many(3, self.tokens, per_block=3)
            else:
                self.world.mine()

    def reorganise(self, orphaned: int, by: int) -> None:
        """Replace the newest blocks by `by` others."""
        self.highest = max(self.highest, self.node.head())
        depth = min(orphaned, self.node.head() - max(self.highest - _TAIL, self.lowest))
        if depth > 0:
            self.node.rpc("anvil_rollback", [depth])
        self.traffic(by)

    def track(self, number: int, enabled: bool, seconds: int) -> None:
        """Enable or disable tracking at some seconds after the newest block."""
        subject = self.subjects[number]
        self.moment = max(self.moment, self._now(seconds))
        self.service.track(self.owners[subject.subject_key], subject, enabled, self.moment)

    def ask(self, number: int, start: str | int, end: str | int, native: str | None, is_instant: bool) -> None:
        """Request a history; bounds are words or percentages of the chain, sent as blocks or as their times."""
        first, last = (bound if isinstance(bound, str) else self._block(bound) for bound in (start, end))
        if isinstance(first, int) and isinstance(last, int):
            first, last = min(first, last), max(first, last) + 1

        def text(bound: str | int) -> str:
            if isinstance(bound, str):
                return bound
            if is_instant and bound <= self.node.head():
                return f"{instant(self.node, bound):%Y-%m-%dT%H:%M:%SZ}"
            return f"block:{bound}"

        subject = self.subjects[number]
        mode = native if subject.kind.value == "wallet" else None
        principal = self.owners[subject.subject_key]
        self.operations[number].append(self.service.ask_history(principal, subject, text(first), text(last), mode))

    def cancel(self, number: int) -> None:
        """Cancel the subject's newest request."""
        for asked in self.operations[number][-1:]:
            if not self.service.operation(asked).is_finished:
                with self.service.store.write() as session:
                    operations.cancel(session, self.owners[self.subjects[number].subject_key], asked)

    def cycle(self) -> None:
        """Run a successful cycle."""
        self.service.good_cycle()

    def history(self, parts: int | None) -> None:
        """Run a slice of history."""
        known = {key for (key,) in self.service.query("select operation_key from raw.history_requests")}
        (head,) = self.service.query("select max(head_number) from raw.network_states")[0]
        reports = self.service.history(parts)
        assert [report.error for report in reports] == [None] * len(reports)
        self._check_resolved(known, head)

    def _check_resolved(self, known: set[int], head: int | None) -> None:
        """Assert that new requests are resolved to the blocks that they name, up to the head."""
        for key, first, last in self.service.query(
            "select operation_key, from_block, to_block from raw.history_requests where from_block is not null"
        ):
            if key in known:
                continue
            (asked,) = (row for rows in self.operations for row in rows if row.operation_key == key)
            start, end = parse_bound(asked.from_text), parse_bound(asked.to_text)
            assert start.block is None or first == max(start.block, 1)
            assert end.block is None or last == min(end.block, head or 0)
            assert end.kind is not BoundKind.NOW or last == head

    def crash(self, during: str, calls: int) -> None:
        """Run a cycle or a slice of history, and kill it after a number of statements."""
        run = self.service.cycle if during == "cycle" else self.service.history
        with ending_after(calls, _kill, "tests.integration.harness"), suppress(Killed):
            run()

    def publish(self) -> None:
        """Build the marts for the first time, or only record a publication."""
        if self._marts_due:
            self._marts_due = False
            run_dbt(self.stores, "run")
            self._record_publication()
        elif not self.stores.marts.exists():
            self._record_publication()

    def _record_publication(self) -> None:
        with open_warehouse(self.service.settings.warehouse_path) as connection:
            (batch,) = connection.execute("select coalesce(max(batch_id), 0) from raw.batches").fetchone() or (0,)
            record_transform(connection, batch, "")
            record_publication(connection, batch, batch)

    # Final state

    @property
    def stores(self) -> Stores:
        """The warehouse and the marts."""
        return Stores(self.service.settings.data_dir)

    def settle(self) -> None:
        """Let all work end: mine a longer chain, run a cycle, all history, and a cycle with its readings."""
        self.traffic(max(self.highest - self.node.head(), 0) + 1)
        self.cycle()
        self.history(None)
        self.cycle()
        if self.stores.marts.exists():
            run_dbt(self.stores, "run", "--exclude", *WITHOUT_VIEWS)
        self._record_publication()
        self.history(0)
        with self.service.store.read() as session:
            assert operations.unfinished(session, 0) == []


# Marts

# Only rows that change the balance: the blocks of other readings depend on when cycles ran.
_STEPS = """
    select * exclude ({readings}) from marts.{mart} where tenant_id = $tenant
    qualify {quantity} is distinct from lag({quantity}) over (
        partition by {pair} order by block_number
    )
"""
# If a token may change its supply without an event, these statuses depend on when the supply was read. The oracle of
# `test_transform` checks them.
_CERTAINTIES = ", ".join(
    f"{figure}_status" for figure in ("supply", "holders", "unattributed", "top10", "hhi", "gini", "nakamoto")
)
_MARTS = {
    "token_activities": "select * from marts.token_activities where tenant_id = $tenant",
    "wallet_activities": "select * from marts.wallet_activities where tenant_id = $tenant",
    # The ranges read a second time depend on the number of cycles.
    "coverage": "select * exclude (verified) from marts.coverage where tenant_id = $tenant",
    "cap_tables": "select * exclude (reconciliation, checked_block_number, percentage_status) from marts.cap_tables "
    "where tenant_id = $tenant",
    "token_positions": "select * exclude (checked_block_number) from marts.token_positions where tenant_id = $tenant",
    "wallet_positions": "select * exclude (checked_block_number) from marts.wallet_positions where tenant_id = $tenant",
    # Only a history request from creation finds the creation block; a clean collection requests block numbers.
    "tokens": "select * exclude (created_block_number, total_supply_status, metadata_status) "
    "replace (behaviour = 'Standard' or behaviour is null as behaviour) from marts.tokens where tenant_id = $tenant",
    "wallets": "select * from marts.wallets where tenant_id = $tenant",
    "cap_table_summaries": f"select * exclude ({_CERTAINTIES}) from marts.cap_table_summaries "
    "where tenant_id = $tenant",
    "balance steps": _STEPS.format(
        mart="balance_changes",
        readings="is_observed, is_checked, is_moved, movement_raw",
        quantity="balance_raw",
        pair="subject_key, range_from_block, token_address, holder_address",
    ),
    "movements": """
        select subject_key, range_from_block, token_address, holder_address, block_number, movement_raw
        from marts.balance_changes where tenant_id = $tenant and is_moved""",
    "supply steps": _STEPS.format(
        mart="supply_changes",
        readings="is_observed, is_checked, is_moved",
        quantity="total_supply_raw",
        pair="subject_key, range_from_block",
    ),
}


def told(stores: Stores, tenant: str) -> dict[str, Rows]:
    """Return a tenant's rows of all marts, without the blocks at which balances were checked."""
    with open_marts(stores) as connection:
        return {
            name: connection.execute(
                f"select columns(*)::varchar from ({query}) order by all", {"tenant": tenant}
            ).fetchall()
            for name, query in _MARTS.items()
        }


def check_marts(run: Interleaving) -> None:
    """Assert that incremental marts equal a full refresh, and for each tenant a clean collection for it alone."""
    refreshed = build_over_nothing(run.folder / "refreshed")
    shutil.copy(run.stores.warehouse, refreshed.warehouse)
    run_dbt(refreshed, "run", "--full-refresh", "--exclude", *WITHOUT_VIEWS)
    incremental, full = content(run.stores), content(refreshed)
    for mart in incremental.keys() | full.keys():
        assert (mart, incremental.get(mart)) == (mart, full.get(mart))
    for tenant in run.tenants:
        alone = collect_cleanly(run.service, run.folder / tenant.tenant_id, [tenant.tenant_id])
        run_dbt(alone, "run")
        shown, expected = told(run.stores, tenant.tenant_id), told(alone, tenant.tenant_id)
        for mart in _MARTS:
            assert (mart, shown[mart]) == (mart, expected[mart])


# The steps

_SUBJECT = st.integers(0, 6)
_PERCENT = st.integers(0, 100)
_STEP = st.one_of(
    st.tuples(st.just("traffic"), st.integers(1, 6)),
    st.tuples(st.just("reorganise"), st.integers(1, 15), st.integers(1, 15)),
    st.tuples(st.just("track"), _SUBJECT, st.booleans(), st.integers(0, 40)),
    st.tuples(
        st.just("ask"),
        _SUBJECT,
        st.one_of(_PERCENT, st.just("creation")),
        st.one_of(_PERCENT, st.just("now")),
        st.sampled_from([None, "full", "balance-only"]),
        st.booleans(),
    ),
    st.tuples(st.just("cancel"), _SUBJECT),
    st.tuples(st.just("cycle")),
    st.tuples(st.just("history"), st.one_of(st.none(), st.integers(0, 4))),
    st.tuples(st.just("crash"), st.sampled_from(["cycle", "history"]), st.integers(0, 250)),
    st.tuples(st.just("publish")),
)
# At least one step of every kind, and several of the most important ones; the first example keeps this order.
_SCRIPT: Sequence[Step] = (
    ("ask", 0, "creation", "now", None, False),
    ("traffic", 3),
    ("cycle",),
    ("history", 2),
    ("track", 0, False, 5),
    ("traffic", 4),
    ("ask", 3, 20, 90, "full", False),
    ("ask", 6, "creation", "now", "balance-only", False),
    ("cycle",),
    ("history", 3),
    ("reorganise", 8, 10),
    ("track", 1, True, 30),
    ("crash", "cycle", 90),
    ("ask", 4, 40, 70, None, True),
    ("history", 1),
    ("cancel", 4),
    ("cycle",),
    ("track", 0, True, 0),
    ("track", 5, False, 20),
    ("traffic", 3),
    ("crash", "history", 60),
    ("ask", 2, 10, 30, None, True),
    ("reorganise", 12, 7),
    ("history", 4),
)


def take_steps(run: Interleaving, steps: Sequence[Step]) -> None:
    """Take the steps, and let all work end."""
    for name, *arguments in steps:
        getattr(run, name)(*arguments)
    run.settle()


def examples(count: int) -> settings:
    """Return settings for a number of deterministic examples without shrinking, which would take minutes."""
    return settings(
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.release
def test_final_blocks_stay_final_on_a_shorter_chain() -> None:
    with Interleaving() as run:
        finals = []
        for steps in ((("ask", 0, "creation", "now", None, False), ("history", None)), (("traffic", 4),)):
            for name, *arguments in (*steps, ("cycle",), ("reorganise", 12, 3), ("cycle",)):
                getattr(run, name)(*arguments)
            finals += run.service.query("select final_number from raw.network_states")
        assert finals == sorted(finals)
        run.settle()
        check_against_clean(run.service, run.node, run.folder / "clean")


@pytest.mark.proof("a crash at any statement of a cycle loses nothing")
@pytest.mark.parametrize("apart", [8, pytest.param(1, marks=pytest.mark.release)])
def test_a_crash_at_any_statement_loses_nothing(apart: int) -> None:
    """Kill cycles that repair a reorganisation, and slices of a new request, each some statements later than before."""
    with Interleaving() as run:
        for calls in range(0, 120, apart):
            run.reorganise(4, 5)
            run.crash("cycle", calls)
        run.cycle()
        for calls in range(0, 60, apart):
            run.ask(calls % 7, calls, calls + 9, "full", False)
            run.crash("history", calls)
        run.settle()
        check_against_clean(run.service, run.node, run.folder / "clean")


@pytest.mark.proof("stored rows equal a clean collection after any order of events")
@pytest.mark.parametrize("count", [1, pytest.param(150, marks=pytest.mark.release)])
def test_raw_rows_equal_a_clean_collection(count: int) -> None:
    @examples(count)
    @given(st.lists(_STEP, min_size=10, max_size=30))
    def holds(steps: Sequence[Step]) -> None:
        # Skip hypothesis' first example, which repeats one step.
        assume(len({name for name, *_ in steps}) > 4)
        with Interleaving() as run:
            take_steps(run, steps)
            check_against_clean(run.service, run.node, run.folder / "clean")

    holds()


@pytest.mark.release
@pytest.mark.parametrize("count", [1, pytest.param(25, marks=pytest.mark.release)])
def test_marts_of_each_tenant_equal_a_clean_collection_for_it_alone(count: int) -> None:
    @examples(count)
    @given(st.permutations(_SCRIPT))
    def holds(steps: Sequence[Step]) -> None:
        half = len(steps) // 2
        with Interleaving(has_marts=True) as run:
            take_steps(run, [*steps[:half], ("publish",), *steps[half:]])
            check_marts(run)

    holds()
