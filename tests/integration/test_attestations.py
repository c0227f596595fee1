"""Attestations: balances equal the node's on random chains; number of requests; causes that supersede a record."""

import copy
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from api.engine.query_texts import load_queries
from control import operations
from control.clock import stored_now
from control.operations import OperationRow, Status
from control.subjects import SubjectRow
from pipelines.attestations import collecting as attestations
from pipelines.attestations.collecting import Periods
from pipelines.attestations.records import store_part
from pipelines.balances import observations
from pipelines.chain.reorganisations import remove_orphaned
from pipelines.raw.builds import record_publication, record_transform
from pipelines.raw.database import open_warehouse
from pipelines.tenants.configuration import open_batch
from tests.chain.conftest import GENESIS_TIME
from tests.chain.fault_proxy import FaultProxy, RpcFault
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World, call_data
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import LATER_CYCLE, Stores, build_over_nothing, open_marts, run_dbt
from tests.integration.harness import LocalNetwork, Service
from tests.integration.killing import Killed
from tests.oracles.node import instant

# Depth at which blocks are final.
DEPTH = 64
# Models that these tests or the collection read.
MODELS = (
    "--select",
    *(f"+{name}" for name in ("attestations", "balance_changes", "coverage", "tokens", "wallet_behaviours")),
    *(
        f"+{name}"
        for name in ("requests__searches", "requests__readings", "requests__attestations", "int_views_transformed")
    ),
)


class Case:
    """A token with balances that also change without events, and a service with its history."""

    def __init__(
        self, node: AnvilNode, make_service: MakeService, contract: str = "LyingToken", url: str | None = None
    ) -> None:
        self.node = node
        self.contract = contract
        self.world = World(node, wallet_count=8)
        self.token: Token = self.world.deploy_strange_token(contract, "HUSH", 6)
        self.created = node.head()
        self.world.distribute(self.token, 1_000, self.world.wallets[:6])
        self.service = make_service(LocalNetwork("local", url or node.url))
        self.tenant = self.service.tenant()
        self.stores = build_over_nothing(self.service.settings.data_dir)

    def live(self, seed: int, blocks: int, *, is_silent: bool = True) -> None:
        """Mine blocks with random transfers, and silent changes if `is_silent`."""
        chance = random.Random(seed)
        for _ in range(blocks):
            if chance.random() < 0.6:
                sender, receiver = chance.sample(self.world.wallets[:7], 2)
                if amount := min(chance.randint(1, 50), self.now(sender)):
                    self.world.transfer(self.token, sender, receiver, amount)
            if is_silent and self.contract == "LyingToken" and chance.random() < 0.15:
                self.quietly("mint_silently", chance.choice(self.world.wallets[:7]), chance.randint(1, 9))
            if is_silent and self.contract == "RebaseToken" and chance.random() < 0.1:
                data = call_data("RebaseToken", "rebase", chance.choice((9, 11)) * 10**17)
                self.world.submit(self.world.deployer, self.token.address, data)
            self.world.mine()

    def rest(self, blocks: int = DEPTH + 1) -> None:
        """Mine empty blocks."""
        for _ in range(blocks):
            self.world.mine()

    def quietly(self, function: str, holder: str, amount: int, *, is_counted: bool = True) -> None:
        data = call_data(self.contract, function, holder, amount, is_counted)
        self.world.submit(self.world.deployer, self.token.address, data)

    def now(self, holder: str) -> int:
        return self.world.balance_of(self.token, holder, self.node.head())

    def tracked_with_history(self) -> SubjectRow:
        """Track the token from the newest block on, and collect its history from creation."""
        opened_at = instant(self.node, self.node.head())
        self.subject = self.service.token(self.tenant, self.token.address, tracked_from=opened_at)
        self.service.ask_history(self.tenant, self.subject, "creation", f"block:{self.node.head() - 1}")
        self.service.good_cycle()
        self.service.history()
        self.build()
        return self.subject

    def build(self) -> None:
        """Run a cycle, build the marts and record a publication."""
        self.service.good_cycle()
        run_dbt(self.stores, *LATER_CYCLE, *MODELS)
        with open_warehouse(self.stores.warehouse) as connection:
            ((batch, version),) = connection.execute(
                "select (select max(batch_id) from raw.batches), (select count(*) from raw.publications)"
            ).fetchall()
            record_transform(connection, batch, "tests")
            record_publication(connection, version + 1, batch)

    def ask(self, block: int) -> OperationRow:
        return self.service.ask_attestation(self.tenant, self.subject, f"block:{block}")

    def attest(self, block: int) -> OperationRow:
        """Attest a block with a build; return the operation afterwards."""
        (operation,) = self.attest_all([block])
        return operation

    def attest_all(self, blocks: list[int]) -> list[OperationRow]:
        """Attest several blocks together; otherwise as `attest`."""
        asked = [self.ask(block) for block in blocks]
        self.service.attest()
        self.build()
        self.service.attest()
        return [self.service.operation(operation) for operation in asked]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with open_marts(self.stores) as connection:
            return connection.execute(query).fetchall()

    def records(self, columns: str = "*") -> list[tuple[Any, ...]]:
        return self.rows(f"select {columns} from marts.attestations order by attestation_number")

    def asked(self, query: str, block: int) -> list[dict[str, Any]]:
        """Return the rows of one of the API's queries about the token at a block."""
        with open_marts(self.stores) as connection:
            ((first,),) = connection.execute(
                """
                select from_block from marts.coverage
                where subject_key = $subject and is_covered and $block between from_block and to_block
                """,
                {"subject": self.subject.subject_key, "block": block},
            ).fetchall()
            found = connection.execute(
                f"select * from ({load_queries()[query].rstrip().rstrip(';')})",
                {
                    "subject_key": self.subject.subject_key,
                    "tenant_id": self.tenant.tenant_id,
                    "first_block": first,
                    "block_number": block,
                },
            )
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def cap_table(self, block: int) -> dict[str, tuple[int, str, int | None]]:
        """Return quantity, reconciliation and checked block by holder, from the API's query."""
        return {
            row["holder_address"]: (int(row["quantity_raw"]), row["reconciliation"], row["checked_block_number"])
            for row in self.asked("holders_as_of", block)
        }

    def supply(self, block: int) -> tuple[int, str]:
        """Return the supply and its status, from the API's query."""
        (row,) = self.asked("supply_as_of", block)
        return int(row["total_supply_raw"]), row["supply_status"]

    def truth(self, block: int) -> dict[str, int]:
        """Return all balances that are not zero, from the node."""
        everybody = [*self.world.wallets, self.world.deployer]
        found = dict(zip(everybody, self.world.balances_of(self.token, everybody, block), strict=True))
        return {holder: quantity for holder, quantity in found.items() if quantity}

    def expect_attested(self, block: int, *, is_whole: bool = True) -> None:
        """Assert that all rows of the block are confirmed and equal the node's, and that the record has their sums.

        Args:
            is_whole: whether the history from creation is covered, so that all holders are known.
        """
        shown, truth = self.cap_table(block), self.truth(block)
        if not is_whole:
            assert shown.keys() <= truth.keys()
            truth = {holder: truth[holder] for holder in shown}
        assert {holder: quantity for holder, (quantity, _, _) in shown.items()} == truth
        assert {word for _, word, _ in shown.values()} <= {"Reconciled", "Adjusted"}
        assert all(checked is not None for _, _, checked in shown.values())
        (record,) = self.rows(
            "select status, balance_count, unconfirmed_count, balances_raw::varchar, total_supply_raw::varchar, "
            f"block_hash from marts.attestations where block_number = {block} and not is_superseded"
        )
        status, count, unconfirmed, balances, supply, block_hash = record
        assert status in ("Reconciled", "Adjusted")
        assert (count, unconfirmed, int(balances)) == (len(truth), 0, sum(truth.values()))
        assert int(supply) == self.world.total_supply(self.token, block)
        assert self.supply(block) == (int(supply), "Observed")
        assert block_hash == self.node.rpc("eth_getBlockByNumber", [hex(block), False])["hash"]

    def expect_supply_difference(self, block: int, known: int) -> None:
        """Assert that the record has the difference to the known supply, and counts it."""
        (record,) = self.rows(
            "select status, difference_count, supply_difference_raw::varchar "
            f"from marts.attestations where block_number = {block} and not is_superseded"
        )
        difference = self.world.total_supply(self.token, block) - known
        assert int(record[2]) == difference
        assert not difference or (record[0] == "Adjusted" and record[1] > 0)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("contract", "seed"),
    [
        ("LyingToken", 0),
        pytest.param("RebaseToken", 1, marks=pytest.mark.release),
        *(pytest.param("LyingToken", seed, marks=pytest.mark.release) for seed in range(1, 6)),
    ],
)
def test_attested_blocks_of_random_chains_are_the_nodes(
    node: AnvilNode, make_service: MakeService, contract: str, seed: int
) -> None:
    case = Case(node, make_service, contract)
    case.live(seed, 30)
    case.tracked_with_history()
    case.live(seed + 100, 8)
    last = node.head()
    # All of them become final.
    case.rest(DEPTH + 5)
    case.build()
    chance = random.Random(seed)
    blocks = sorted(chance.sample(range(case.created + 2, last + 5), 3), reverse=seed % 2 == 0)
    # Attest them one after the other, or all together.
    known: dict[int, int] = {}
    operations = []
    for part in [[block] for block in blocks] if seed % 2 == 0 else [blocks]:
        known |= {block: case.supply(block)[0] for block in part}
        operations += case.attest_all(part)
    for block, operation in zip(blocks, operations, strict=True):
        assert (operation.status, operation.to_block) == (Status.SUCCEEDED, block), operation
        case.expect_attested(block)
        case.expect_supply_difference(block, known[block])
    # Rebases between readings are not located, so attestations find them.
    truth = {block: case.world.total_supply(case.token, block) for block in blocks}
    assert contract != "RebaseToken" or known != truth
    case.live(seed + 200, 6)
    case.build()
    case.build()
    for block in blocks:
        case.expect_attested(block)


@pytest.fixture(scope="module")
def hushed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """The original that `hush` copies for each test."""

    def make_service(*networks: LocalNetwork) -> Service:
        return Service(tmp_path_factory.mktemp("hushed"), networks)

    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        case = Case(node, make_service)
        case.live(7, 14)
        case.rest()
        case.tracked_with_history()
        case.service.close()
        yield case


@pytest.fixture
def hush(hushed: Case, tmp_path: Path) -> Iterator[Case]:
    """A token with its whole history collected and final."""
    before = hushed.node.snapshot()
    shutil.copytree(hushed.service.settings.data_dir.parent, tmp_path / "hush")
    case = copy.copy(hushed)
    case.world = copy.copy(hushed.world)
    case.service = Service(tmp_path / "hush", [LocalNetwork("local", hushed.node.url)])
    case.stores = Stores(case.service.settings.data_dir)
    yield case
    case.service.close()
    hushed.node.revert(before)


def readings(case: Case) -> list[tuple[Any, ...]]:
    """Return the balance readings of attestations."""
    return case.service.query(
        "select token_address, holder_address, block_number from raw.balance_observations "
        "where purpose = 'Attestation' order by all"
    )


@pytest.mark.release
def test_a_killed_attestation_keeps_its_readings_and_does_not_repeat_them(hush: Case) -> None:
    """An attestation killed within every part ends with the same record as one without kills."""
    block, kills = hush.created + 9, 0
    at_once, operation = hush.ask(block - 1), hush.ask(block)
    while is_killed_within_a_part(hush):
        kills += 1
        if kills in (1, 3):
            # A cycle and a build run over the partial readings.
            hush.build()
    assert kills > 3
    hush.build()
    hush.service.attest()
    assert {hush.service.operation(one).status for one in (at_once, operation)} == {Status.SUCCEEDED}
    hush.build()
    hush.expect_attested(block)
    found = readings(hush)
    assert len(found) == len(set(found)) > 3
    of_block = [row for row in found if row[2] == block]
    records = {row[0]: row[1:] for row in hush.records("block_number, read_count, difference_count")}
    assert records[block][0] == len(of_block)
    assert hush.service.operation(operation).progress_done == len(of_block)


def is_killed_within_a_part(case: Case) -> bool:
    """Continue attestations until one balance is stored; return False if they end before."""
    with (
        mock.patch.object(attestations, "PART", 1),
        mock.patch.object(attestations, "store_part", die_after(store_part, 1)),
    ):
        try:
            case.service.attest()
        except Killed:
            return True
    return False


def die_after(work: Callable[..., Any], times: int) -> Callable[..., Any]:
    """Wrap a function so that it raises `Killed` after a number of calls."""
    done = 0

    def dying(*arguments: Any) -> None:
        nonlocal done
        work(*arguments)
        done += 1
        if done >= times:
            raise Killed

    return dying


@pytest.mark.release
def test_a_cancelled_attestation_stops_and_may_be_requested_again(hush: Case) -> None:
    block = hush.created + 9
    operation = hush.ask(block)
    with mock.patch.object(attestations, "PART", 1):
        hush.service.attest(parts=2)
    running = hush.service.operation(operation)
    assert running.status is Status.RUNNING
    assert 0 < running.progress_done < (running.progress_total or 0)
    with hush.service.store.write() as session:
        operations.cancel(session, hush.tenant, running)
    hush.service.attest()
    assert hush.service.operation(operation).status is Status.CANCELLED
    assert hush.service.query("select count(*) from raw.attestations") == [(0,)]
    read = readings(hush)
    hush.build()
    hush.attest(block)
    hush.expect_attested(block)
    assert set(read) < set(readings(hush))


@pytest.mark.release
def test_a_block_waits_until_it_is_final_and_is_attested_once(hush: Case) -> None:
    hush.live(3, 4)
    block = hush.node.head()
    hush.build()
    operation = hush.ask(block)
    hush.service.attest()
    waiting = hush.service.operation(operation)
    assert (waiting.status, waiting.to_block, waiting.error) == (Status.PENDING, None, None)
    hush.rest()
    hush.build()
    hush.service.attest()
    hush.build()
    hush.service.attest()
    assert hush.service.operation(operation).status is Status.SUCCEEDED
    read = readings(hush)
    # A different moment in the same block.
    until = datetime.fromtimestamp(hush.node.block_time(block + 1), UTC) - timedelta(microseconds=1)
    again = hush.service.ask_attestation(hush.tenant, hush.subject, until.isoformat())
    hush.service.attest()
    found = hush.service.operation(again)
    assert (found.status, found.to_block) == (Status.SUCCEEDED, block)
    assert found.result == hush.service.operation(operation).result == {"attestationNumber": 1}
    assert readings(hush) == read
    assert len(hush.records()) == 1


@pytest.mark.release
def test_attestation_requests_are_counted_and_stop_at_the_budget(node: AnvilNode, make_service: MakeService) -> None:
    with FaultProxy(node.url) as proxy:
        case = Case(node, make_service, url=proxy.url)
        case.live(7, 14)
        case.rest()
        case.tracked_with_history()

        def spent() -> dict[str, tuple[int, int]]:
            rows = case.service.query(
                "select work, request_count, unit_count from raw.requests_spent where purpose = 'Attestation'"
            )
            return {work: (requests, units) for work, requests, units in rows}

        before = len(proxy.calls)
        operation = case.ask(case.created + 9)
        case.service.attest()
        assert sum(requests for requests, _ in spent().values()) == len(proxy.calls) - before
        requests, units = spent()["balances"]
        assert units == len(readings(case)) + 1
        # One request for each balance and one for the supply.
        assert requests == units
        case.build()
        case.service.attest()
        assert case.service.operation(operation).status is Status.SUCCEEDED
        case.attest(case.created + 9)
        assert spent()["balances"] == (requests, units)

        # The day's budget is used up: there are no requests.
        case.service.networks = {"local": replace(case.service.networks["local"], max_requests_per_day=1)}
        case.build()
        later = case.ask(case.created + 5)
        before = len(proxy.calls)
        case.service.attest()
        assert len(proxy.calls) == before
        assert case.service.operation(later).presented_status == "WaitingForBudget"


@pytest.mark.release
def test_a_holder_found_later_supersedes_a_record_without_changing_it(
    node: AnvilNode, make_service: MakeService
) -> None:
    case = Case(node, make_service)
    silent = case.world.wallets[7]
    case.quietly("mint_silently", silent, 9)
    case.world.mine()
    case.live(5, 8, is_silent=False)
    case.rest()
    # Tracking begins after the silent credit, so there is no search for its holder.
    case.subject = case.service.token(case.tenant, case.token.address, tracked_from=instant(node, case.created + 4))
    case.build()
    case.build()
    block = case.created + 9
    assert silent not in case.cap_table(block)
    case.attest(block)
    (first,) = case.records()
    assert case.records("superseded_by") == [(None,)]
    case.world.transfer(case.token, silent, case.world.wallets[0], 2)
    case.rest(2)
    case.build()
    assert case.cap_table(block)[silent][0] == 9
    described = case.rows(
        "select column_name from duckdb_columns() where schema_name = 'marts' and table_name = 'attestations'"
    )
    names = [name for (name,) in described]
    (now,) = case.records()
    changed = {name for name, was, is_now in zip(names, first, now, strict=True) if was != is_now}
    assert changed == {"is_superseded", "superseded_by"}
    assert case.records("superseded_by") == [("NewHolder",)]
    case.attest(block)
    assert case.records("attestation_number, superseded_by") == [(1, "NewHolder"), (2, None)]
    case.expect_attested(block, is_whole=False)


@pytest.mark.release
def test_a_filled_gap_supersedes_the_records_after_it(node: AnvilNode, make_service: MakeService) -> None:
    case = Case(node, make_service, "RebaseToken")
    case.live(2, 12)
    case.rest()
    begin = case.created + 6
    case.subject = case.service.token(case.tenant, case.token.address, tracked_from=instant(node, begin))
    case.build()
    case.attest(begin + 4)
    case.service.ask_history(case.tenant, case.subject, "creation", f"block:{begin - 1}")
    case.service.history()
    case.build()
    assert case.records("superseded_by") == [("FilledGap",)]
    case.attest(begin + 4)
    assert case.records("superseded_by") == [("FilledGap",), (None,)]
    case.expect_attested(begin + 4)


@pytest.mark.release
def test_a_corrected_balance_supersedes_records_after_the_change(node: AnvilNode, make_service: MakeService) -> None:
    """The earlier reading seemed to confirm the balance, which has changed without an event since."""
    case = Case(node, make_service)
    case.live(7, 8, is_silent=False)
    case.rest()
    case.tracked_with_history()
    case.build()
    # The sum of both balances stays the same.
    case.quietly("mint_silently", case.world.wallets[0], 5, is_counted=False)
    case.quietly("burn_silently", case.world.wallets[1], 5, is_counted=False)
    changed = case.world.mine()
    case.rest()
    with mock.patch.object(observations, "SAMPLE", 0):
        case.build()
        case.ask(changed - 1)
        case.attest(changed + 1)
    columns = "block_number, status, superseded_by"
    assert case.records(columns) == [(changed - 1, "Reconciled", None), (changed + 1, "Reconciled", None)]
    # The rotating readings reveal the change, and its block is found.
    for _ in range(3):
        case.rest(1)
        case.build()
    assert case.records(columns) == [(changed - 1, "Reconciled", None), (changed + 1, "Reconciled", "OtherBalance")]
    case.attest(changed + 1)
    for block in (changed - 1, changed + 1):
        case.expect_attested(block)
    assert case.records("superseded_by") == [(None,), ("OtherBalance",), (None,)]


@pytest.mark.release
def test_a_chain_reset_supersedes_the_record_of_a_replaced_block(node: AnvilNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    case.tracked_with_history()
    kept, before = node.head(), node.snapshot()
    case.live(2, 6)
    block = node.head()
    case.rest()
    case.build()
    case.attest(block)
    assert case.records("superseded_by") == [(None,)]
    node.revert(before)
    case.world = World(node, wallet_count=8, seed=9, block_seconds=13)
    case.live(4, 90)
    # A cycle alone does not delete final blocks, so this does.
    with open_warehouse(case.service.settings.warehouse_path) as connection:
        batch = open_batch(connection, "chain reset")
        remove_orphaned(connection, "local", kept, "0x1", "0x2", batch)
    case.build()
    assert case.records("superseded_by, block_time") == [("ChainReset", None)]


@pytest.mark.release
def test_a_wallets_balances_are_attested(node: AnvilNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    case.live(4, 10)
    wallet = case.world.wallets[0]
    for _ in range(3):
        case.world.submit(wallet, case.world.wallets[1], value=10**15)
        case.world.mine()
    block = node.head() - 4
    case.live(5, 4)
    case.rest()
    opened_at = instant(node, node.head())
    case.service.token(case.tenant, case.token.address, tracked_from=opened_at)
    case.subject = case.service.wallet(case.tenant, wallet, tracked_from=opened_at)
    case.service.ask_history(case.tenant, case.subject, "creation", f"block:{node.head() - 1}")
    case.service.good_cycle()
    case.service.history()
    case.build()
    operation = case.attest(block)
    assert operation.status is Status.SUCCEEDED
    with open_marts(case.stores) as connection:
        rows = connection.execute(
            f"select token_address, quantity_raw, reconciliation from ({load_queries()['balances_as_of']})",
            {
                "subject_key": case.subject.subject_key,
                "tenant_id": case.tenant.tenant_id,
                "first_block": 1,
                "block_number": block,
            },
        ).fetchall()
    expected = {
        "native": case.world.native_balance(wallet, block),
        case.token.address: case.world.balance_of(case.token, wallet, block),
    }
    assert {token: int(quantity) for token, quantity, _ in rows} == {k: v for k, v in expected.items() if v}
    assert {word for _, _, word in rows} <= {"Reconciled", "Adjusted"}
    (record,) = case.records("balance_count, unconfirmed_count, balances_raw, total_supply_raw, block_number")
    assert record == (len(rows), 0, None, None, block)


@pytest.mark.release
def test_readings_of_an_attestation_are_its_tenants_own(hush: Case) -> None:
    other = hush.service.tenant("other")
    theirs = hush.service.token(other, hush.token.address, tracked_from=instant(hush.node, hush.created))
    # The other tenant's own differences are located first.
    for _ in range(4):
        hush.build()
    block, head = hush.created + 9, hush.node.head()

    def shown() -> list[tuple[Any, ...]]:
        return hush.rows(
            "select block_number, holder_address, balance_raw::varchar, is_checked, is_adjusted "
            f"from marts.balance_changes where subject_key = {theirs.subject_key} "
            f"and block_number < {head} order by all"
        )

    before = shown()
    hush.attest(block)
    assert shown() == before
    assert {row[0] for row in hush.records("subject_key")} == {hush.subject.subject_key}
    owed = hush.service.query(
        "select distinct map_keys(visible_to) from raw.balance_observations where purpose = 'Attestation'"
    )
    assert owed == [([hush.tenant.tenant_id],)]
    hush.expect_attested(block)


@pytest.mark.release
def test_without_past_states_an_attestation_fails_with_the_reason(node: AnvilNode, make_service: MakeService) -> None:
    with FaultProxy(node.url) as proxy:
        case = Case(node, make_service, url=proxy.url)
        case.live(7, 8)
        day = instant(node, node.head()).replace(hour=0, minute=0, second=0)
        for days in (1, 2):
            case.world.mine(int((day + timedelta(days=days)).timestamp()))
        case.rest()
        case.tracked_with_history()

        def is_past(params: Any) -> bool:
            block = params[1]
            if isinstance(block, dict):
                block = node.rpc("eth_getBlockByHash", [block["blockHash"], False])["number"]
            return str(block).startswith("0x") and int(block, 16) < node.head()

        refusal = {"code": -32000, "message": "missing trie node"}
        proxy.inject(RpcFault(**refusal, methods=("eth_call", "eth_getCode", "eth_getBalance"), when=is_past))
        operation = case.ask(case.created + 5)
        case.service.attest()
        failed = case.service.operation(operation)
        assert failed.status is Status.FAILED
        assert "past states" in (failed.error or "")
        assert case.records() == []
        # Once a cycle knows that past states are missing, ended days cause no requests.
        case.rest(2)
        case.build()
        before = len(proxy.calls)
        case.service.attest(Periods("day", 10_000))
        assert len(proxy.calls) == before


@pytest.mark.release
def test_a_refused_period_end_is_retried_after_days(node: AnvilNode, make_service: MakeService) -> None:
    month = Periods("month", 10_000)
    with FaultProxy(node.url) as proxy:
        case = Case(node, make_service, url=proxy.url)
        ends = []
        for start in (datetime(2024, 2, 1, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC)):
            case.live(start.month, 3)
            ends.append(node.head())
            case.world.mine(int(start.timestamp()))
        case.live(9, 2)
        case.rest()
        case.tracked_with_history()
        refused = {hex(ends[0]), node.rpc("eth_getBlockByNumber", [hex(ends[0]), False])["hash"]}

        today = stored_now()

        def is_refused(params: Any) -> bool:
            return (params[1]["blockHash"] if isinstance(params[1], dict) else params[1]) in refused

        def asks(days: int) -> bool:
            """Return whether a slice of work some days later sends requests to the node."""
            before = len(proxy.calls)
            with mock.patch("pipelines.attestations.records.stored_now", return_value=today + timedelta(days=days)):
                case.service.attest(month)
            return len(proxy.calls) > before

        def attested() -> list[int]:
            case.build()
            return sorted(block for (block,) in case.records("block_number"))

        fault = RpcFault(code=-32000, message="missing trie node", methods=("eth_call",), when=is_refused)
        proxy.inject(fault)
        # Retries follow after 1, 2, 4, ... days.
        assert [asks(days) for days in (0, 0, 1, 2, 3, 4, 6, 7)] == [True, False, True, False, True, False, False, True]
        assert attested() == [ends[1]]
        # A tenant's own request is processed at once.
        operation = case.ask(ends[0])
        assert asks(7)
        failed = case.service.operation(operation)
        assert failed.status is Status.FAILED
        assert "the node lacks the state or history of the block (code -32000)" in (failed.error or "")
        proxy.withdraw(fault)
        assert not asks(7)
        assert asks(100)
        assert attested() == ends


@pytest.mark.ci
@pytest.mark.parametrize("is_created", [False, pytest.param(True, marks=pytest.mark.release)])
def test_ends_of_fully_covered_periods_are_attested(
    node: AnvilNode, make_service: MakeService, is_created: bool
) -> None:
    case = Case(node, make_service)
    ends = []
    for month in (1, 2, 3, 4):
        case.live(month, 3)
        start = int(datetime(2024, month, 1, tzinfo=UTC).timestamp())
        ends.append(node.head())
        case.world.mine(start)
    case.live(9, 2)
    case.rest()
    if is_created:
        case.tracked_with_history()
    else:
        opened_at = datetime(2024, 1, 15, tzinfo=UTC)
        case.subject = case.service.token(case.tenant, case.token.address, tracked_from=opened_at)
    case.build()
    case.service.attest(None)
    case.service.attest(Periods("month", 3))
    case.build()
    assert case.records() == []
    month = Periods("month", 10_000)
    case.service.attest(month)
    case.build()
    # The month in which tracking began is partly covered; the month of the token's creation is fully covered.
    covered = ends if is_created else ends[2:]
    found = case.records("block_number, is_automatic, superseded_by")
    assert sorted(block for block, _, _ in found) == [block for block in covered if block >= case.created]
    assert {row[1:] for row in found} == {(True, None)}
    for block in covered:
        case.expect_attested(block, is_whole=is_created)
    with FaultProxy(node.url) as proxy:
        case.service.point_at("local", proxy.url)
        case.service.attest(month)
        assert proxy.calls == []
    case.service.point_at("local", node.url)
    day = case.service.attest(Periods("day", 10_000))
    assert [report.error for report in day] == [None]
    case.build()
    # Days without blocks end with the same block as the day before.
    assert len({block for (block,) in case.records("block_number")}) >= len(covered)
    assert len(case.records()) == len({block for (block,) in case.records("block_number")})
