"""Second readings: omitted rows come in, invented rows go, and an honest row stays when a later answer denies it."""

import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipelines.raw.database import open_warehouse
from tests.chain.fault_proxy import FaultProxy, HttpFault, LieFault, LostLogsFault
from tests.chain.node import AnvilNode
from tests.chain.world import TRANSFER_TOPIC, Token, World
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import check_truth, instant


@pytest.fixture
def world(node: AnvilNode) -> World:
    made = World(node, wallet_count=6, gas_price=10**9)
    made.place_multicall()
    return made


@pytest.fixture
def token(world: World) -> Token:
    made = world.deploy_token("GOLD", 18)
    world.distribute(made, 100_000)
    return made


@pytest.fixture
def proxy(node: AnvilNode) -> Iterator[FaultProxy]:
    with FaultProxy(node.url) as running:
        yield running


def mine(world: World, count: int) -> None:
    """Add blocks."""
    for _ in range(count):
        world.mine()


def stored(service: Service) -> int:
    """Return the number of transfers."""
    return int(service.query("select count(*) from raw.token_transfers")[0][0])


def track(service: Service, world: World, token: Token, opening: int) -> None:
    """Track the token and a wallet from a block on."""
    tenant = service.tenant()
    service.token(tenant, token.address, tracked_from=instant(world.node, opening))
    service.wallet(tenant, world.wallets[0], tracked_from=instant(world.node, opening))


@pytest.fixture
def opening(world: World, token: Token) -> int:
    """The first of five blocks with 40 transfers; all of them are final."""
    first = world.node.head() + 1
    world.transfer_many(40, [token], per_block=8)
    mine(world, 70)
    return first


@pytest.fixture
def service(world: World, token: Token, opening: int, proxy: FaultProxy, make_service: MakeService) -> Service:
    """A service with one node behind the proxy, which tracks the token and a wallet from `opening` on."""
    made = make_service(LocalNetwork("local", proxy.url))
    track(made, world, token, opening)
    return made


@pytest.mark.ci
def test_logs_left_out_of_the_tail_come_in_once_it_is_final(
    node: AnvilNode, world: World, token: Token, proxy: FaultProxy, make_service: MakeService
) -> None:
    service = make_service(LocalNetwork("local", proxy.url))
    opening = node.head() + 1
    world.transfer_many(40, [token], per_block=8)
    track(service, world, token, opening)
    proxy.inject(LostLogsFault(times=1))
    service.good_cycle()
    assert stored(service) < 40
    mine(world, 70)
    report = service.good_cycle()
    assert report.corrected_ranges == 1
    assert stored(service) == 40
    check_truth(service, node)
    (row,) = service.query("select stored_rows < read_rows, read_rows from raw.verifications")
    assert row[0]
    mine(world, 70)
    assert service.good_cycle().corrected_ranges == 0


@pytest.mark.ci
def test_another_provider_reads_already_final_blocks_a_second_time(
    node: AnvilNode, world: World, token: Token, opening: int, proxy: FaultProxy, make_service: MakeService
) -> None:
    service = make_service(LocalNetwork("local", proxy.url, second_url=node.url))
    track(service, world, token, opening)
    proxy.inject(LostLogsFault(times=1))
    assert service.good_cycle().corrected_ranges == 0
    assert stored(service) < 40
    report = service.good_cycle()
    assert report.corrected_ranges == 1
    assert stored(service) == 40
    check_truth(service, node)
    ((provider,),) = service.query("select provider from raw.verifications")
    assert provider == node.url.removeprefix("http://")


def nothing(logs: list[Any]) -> list[Any]:
    """Omit all logs."""
    return []


def halves(logs: list[Any]) -> list[Any]:
    """Keep a random half of the logs, a different one in each answer."""
    return [log for log in logs if random.getrandbits(1)]


def without_inner_calls(traces: list[Any]) -> list[Any]:
    """Keep the transactions' own frames."""
    return [trace for trace in traces if not trace["traceAddress"]]


def with_an_invented_call(receiver: str, traces: list[Any]) -> list[Any]:
    """Add an inner call that pays the receiver to each transaction."""
    invented = []
    for trace in traces:
        if not trace["traceAddress"] and trace["type"] == "call":
            paid = {**trace["action"], "from": PAYER, "to": receiver, "value": hex(10**30), "callType": "call"}
            invented.append({**trace, "action": paid, "traceAddress": [9], "subtraces": 0})
    return [*traces, *invented]


# Passes on to a wallet what it receives, inside the transaction.
PAYER = "0x" + "ba" * 20


@pytest.mark.proof("a false internal transfer goes after two equal readings")
@pytest.mark.parametrize("is_invented", [False, True])
def test_false_internal_transfers_are_replaced_after_two_equal_readings(
    is_invented: bool, node: AnvilNode, world: World, proxy: FaultProxy, make_service: MakeService, tmp_path: Path
) -> None:
    wallet = world.wallets[0]
    node.set_code(PAYER, "0x" + "60006000600060003473" + wallet[2:] + "5af100")
    opening = node.head() + 1
    for amount in (5, 6, 7):
        world.submit(world.wallets[1], PAYER, value=amount)
        world.mine()
    mine(world, 70)
    service = make_service(LocalNetwork("local", proxy.url))
    service.wallet(service.tenant(), wallet, tracked_from=instant(node, opening))
    lie = partial(with_an_invented_call, wallet) if is_invented else without_inner_calls
    proxy.inject(LieFault(methods=["trace_block"], tell=lambda params, traces: lie(traces)))
    service.good_cycle()
    false = service.raw_rows()["internal_transfers"]
    assert len(false) == (6 if is_invented else 0)
    proxy.clear()
    service.good_cycle()
    assert service.raw_rows()["internal_transfers"] == false
    assert service.query("select status from raw.network_states") == [("Inconsistent",)]
    service.good_cycle()
    assert service.query("select status from raw.network_states") == [("Healthy",)]
    rows = service.raw_rows()["internal_transfers"]
    assert len(rows) == 3
    assert rows == service.clean_rows(tmp_path)["internal_transfers"]
    service.good_cycle()
    verified = service.query("select min(from_block) from raw.verified_ranges where subject_kind = 'native'")
    assert verified == [(opening,)]


@pytest.mark.proof("an omitted log is added by a second reading")
@pytest.mark.parametrize("omit", [nothing, halves])
def test_omitted_logs_of_final_blocks_come_in_from_the_only_node(
    omit: Callable[[list[Any]], list[Any]], node: AnvilNode, proxy: FaultProxy, service: Service, tmp_path: Path
) -> None:
    proxy.inject(LieFault(methods=["eth_getLogs"], tell=lambda params, logs: omit(logs)))
    service.good_cycle()
    assert stored(service) < 40
    assert service.query("select * from raw.verified_ranges") == []
    proxy.clear()
    service.good_cycle()
    check_truth(service, node)
    assert service.raw_rows()["token_transfers"] == service.clean_rows(tmp_path)["token_transfers"]
    # A range that was read a second time is not read again.
    proxy.calls.clear()
    service.good_cycle()
    assert proxy.count("eth_getLogs") == 0


@pytest.mark.ci
def test_a_second_provider_that_is_down_is_retried_later(
    node: AnvilNode, world: World, token: Token, opening: int, proxy: FaultProxy, make_service: MakeService
) -> None:
    service = make_service(LocalNetwork("local", node.url, second_url=proxy.url))
    track(service, world, token, opening)
    proxy.inject(HttpFault(status=503, times=1000))
    for _ in range(2):
        service.good_cycle()
    assert stored(service) == 40
    (failure,) = service.query("select detail from raw.collection_failures")
    assert "second reading" in failure[0]
    assert service.query("select * from raw.verified_ranges") == []
    proxy.clear()
    service.good_cycle()
    assert service.query("select count(*) > 0 from raw.verified_ranges") == [(True,)]
    assert service.query("select * from raw.verifications") == []


RECEIVER = "0x" + "fa" * 20
COMPARED = ("token_transfers", "coverage", "balance_observations")


def invented(node: AnvilNode, token: Token, number: int) -> LieFault:
    """An invented mint, with the hash of its block."""
    log = {
        "address": token.address,
        "topics": [TRANSFER_TOPIC, "0x" + "00" * 32, "0x" + "00" * 12 + RECEIVER[2:]],
        "data": f"0x{10**30:064x}",
        "blockNumber": hex(number),
        "blockHash": node.rpc("eth_getBlockByNumber", [hex(number), False])["hash"],
        "transactionHash": "0x" + "ab" * 32,
        "transactionIndex": "0x7",
        "logIndex": "0x63",
        "removed": False,
    }

    def tell(params: list[Any], logs: list[Any]) -> list[Any]:
        asked = params[0]
        is_asked = int(asked["fromBlock"], 16) <= number <= int(asked["toBlock"], 16)
        return [*logs, log] if is_asked and asked.get("address") else logs

    return LieFault(methods=["eth_getLogs"], tell=tell)


def state(service: Service) -> tuple[str, str | None]:
    """The network's status and its detail."""
    ((status, detail),) = service.query("select status, detail from raw.network_states")
    return status, detail


def invented_rows(service: Service) -> int:
    """Count the rows that name the invented recipient: transfers and readings."""
    ((rows,),) = service.query(
        """
        select
            (select count(*) from raw.token_transfers where to_address = $1)
            + (select count(*) from raw.balance_observations where holder_address = $1)
        """,
        [RECEIVER],
    )
    return int(rows)


@pytest.mark.proof("an invented log is removed by a second reading")
@pytest.mark.parametrize("urls", [1, 2])
def test_an_invented_log_is_removed_with_its_readings(
    urls: int,
    node: AnvilNode,
    world: World,
    token: Token,
    opening: int,
    proxy: FaultProxy,
    make_service: MakeService,
    tmp_path: Path,
) -> None:
    service = make_service(LocalNetwork("local", proxy.url, second_url=node.url if urls == 2 else None))
    track(service, world, token, opening)
    proxy.inject(invented(node, token, opening + 1))
    service.good_cycle()
    assert invented_rows(service) > 1
    proxy.clear()
    service.good_cycle()
    assert invented_rows(service) == 0
    check_truth(service, node)
    rows, clean = service.raw_rows(), service.clean_rows(tmp_path)
    for table in COMPARED:
        assert rows[table] == clean[table]
    ((judge, removed, added),) = service.query("select judged_by, removed_rows, added_rows from raw.verifications")
    assert (judge, removed, added) == ("Proof", 1, 0)
    # Readings were removed, so the whole token is recomputed.
    ((marked,),) = service.query(
        """
        select count(*)
        from raw.changes
        inner join raw.control_subjects using (subject_key)
        where kind = 'token' and from_block = 0 and to_block is null and reason = 'Rows'
        """
    )
    assert marked == 1


@pytest.mark.ci
def test_a_row_that_a_later_answer_denies_stays(
    node: AnvilNode, token: Token, opening: int, proxy: FaultProxy, service: Service
) -> None:
    service.good_cycle()
    before = service.raw_rows()
    for lie in (LieFault(methods=["eth_getLogs"], tell=lambda params, logs: []), invented(node, token, opening + 1)):
        proxy.inject(lie)
        assert service.good_cycle().corrected_ranges == 0
        proxy.clear()
        after = service.raw_rows()
        for table in COMPARED:
            assert after[table] == before[table]
        assert state(service)[0] == "Healthy"
        assert service.query("select count(*) > 0 from raw.verified_ranges") == [(True,)]
        assert service.query("select distinct judged_by from raw.verifications") == [("Proof",)]
        with open_warehouse(service.settings.warehouse_path) as connection:
            connection.execute("delete from raw.verified_ranges")


def no_receipts() -> LieFault:
    """A node that omits the receipts of whole blocks, so that no proof is possible."""
    return LieFault(methods=["eth_getBlockReceipts"], tell=lambda params, receipts: [])


@pytest.mark.ci
@pytest.mark.parametrize("first", ["honest", "lying"])
def test_without_receipts_two_equal_readings_of_three_decide(
    first: str, node: AnvilNode, token: Token, opening: int, proxy: FaultProxy, service: Service, tmp_path: Path
) -> None:
    lie = invented(node, token, opening + 1)
    proxy.inject(no_receipts())
    if first == "lying":
        proxy.inject(lie)
    service.good_cycle()
    before = service.raw_rows()
    proxy.withdraw(lie)
    if first == "honest":
        proxy.inject(lie)
    assert service.good_cycle().corrected_ranges == 0
    after = service.raw_rows()
    for table in COMPARED:
        assert after[table] == before[table]
    status, detail = state(service)
    assert status == "Inconsistent"
    rows = len([row for row in before["token_transfers"] if row[1] == opening + 1])
    others = rows + (1 if first == "honest" else -1)
    assert f"block {opening + 1}, token {token.address}: {rows} rows are stored, another reading gave {others}" in str(
        detail
    )
    assert "127.0.0.1" not in str(detail)
    proxy.withdraw(lie)
    service.good_cycle()
    assert state(service) == ("Healthy", None)
    assert service.query("select * from raw.disputed_answers") == []
    assert invented_rows(service) == 0
    check_truth(service, node)
    assert service.raw_rows()["token_transfers"] == service.clean_rows(tmp_path)["token_transfers"]


@pytest.mark.ci
def test_three_readings_that_all_differ_wait_for_one_that_agrees(
    node: AnvilNode, world: World, token: Token, proxy: FaultProxy, make_service: MakeService
) -> None:
    opening = node.head() + 1
    world.transfer_many(8, [token], per_block=8)
    mine(world, 70)
    service = make_service(LocalNetwork("local", proxy.url))
    service.token(service.tenant(), token.address, tracked_from=instant(node, opening))

    def some(params: list[Any], logs: list[Any], left: int) -> list[Any]:
        return [log for log in logs if int(log["blockNumber"], 16) == opening][:left]

    for left in (3, 2, 1):
        lies = LieFault(methods=["eth_getLogs"], tell=partial(some, left=left))
        proxy.inject(no_receipts(), lies)
        service.good_cycle()
        proxy.clear()
    assert state(service)[0] == "Inconsistent"
    proxy.inject(no_receipts())
    service.good_cycle()
    assert state(service)[0] == "Inconsistent"
    service.good_cycle()
    assert state(service) == ("Healthy", None)
    check_truth(service, node)


@pytest.mark.release
def test_the_marts_equal_those_of_a_service_without_lies(
    node: AnvilNode,
    world: World,
    token: Token,
    opening: int,
    proxy: FaultProxy,
    ready_folder: tuple[Path, str],
    tmp_path: Path,
) -> None:
    """A mint and half of the logs: both lies are of one cycle, and were published in between."""

    def publish(name: str, url: str, cycles: int) -> Service:
        shutil.copytree(ready_folder[0], tmp_path / name)
        service = Service(tmp_path / name, [LocalNetwork("local", url)])
        track(service, world, token, opening)
        for _ in range(cycles):
            done = service.ledgermart("cycle")
            assert done.returncode == 0, done.stdout + done.stderr
            proxy.clear()
        service.close()
        return service

    proxy.inject(
        LieFault(
            methods=["eth_getLogs"],
            tell=lambda params, logs: invented(node, token, opening + 1).tell(params, halves(logs)),
        )
    )
    met, clean = publish("met", proxy.url, 2), publish("clean", node.url, 2)
    for table, columns in {
        "token_activities": "activity_type, status, block_number, log_index, from_address, to_address, amount",
        "wallet_activities": "activity_type, status, block_number, log_index, token_address, amount",
        "token_positions": "holder_address, quantity_raw::varchar, is_adjusted",
        "wallet_positions": "token_address, quantity_raw::varchar, is_adjusted",
        "coverage": "from_block, to_block, is_covered, reason",
    }.items():
        query = f"select {columns} from marts.{table} order by all"
        assert met.published(query) == clean.published(query)
    # Nothing new is published of the other one, so it still shows the first reading.
    assert met.published("select distinct verified from marts.coverage where is_covered") == [("true",)]
