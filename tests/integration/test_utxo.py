"""A chain of outputs from a real node to the marts, compared with the blocks' JSON and the node's own scan."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.app import create_app
from cli.network import run_check
from control.settings import load_settings
from pipelines.raw.builds import record_transform
from pipelines.raw.database import open_warehouse
from tests.chain.fault_proxy import FaultProxy, LieFault, RpcFault
from tests.chain.utxo_mweb import MwebTraffic
from tests.chain.utxo_node import UtxoNode
from tests.chain.utxo_world import OPEN_SCRIPT, UtxoWorld, data_script
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import LATER_CYCLE, Stores, build_over_nothing, open_marts, run_dbt
from tests.integration.harness import LocalUtxoNetwork
from tests.oracles.utxo_chain import ChainOracle
from warehouse.versions import publish

KINDS = ("p2wpkh", "p2pkh", "p2sh-p2wpkh", "p2wsh", "p2tr")
COIN = 10**8


@pytest.fixture
def node() -> Iterator[UtxoNode]:
    with UtxoNode() as running:
        yield running


@pytest.fixture
def bare_node() -> Iterator[UtxoNode]:
    """A node that gives no outputs of inputs."""
    with UtxoNode(txindex=False) as running:
        yield running


class Case:
    """Wallets of all kinds on a chain, each with older outputs, and a service."""

    def __init__(self, node: UtxoNode, make_service: MakeService, **network: Any) -> None:
        self.node = node
        self.world = UtxoWorld(node)
        self.world.mature(60)
        self.wallets = [self.world.address(kind) for kind in KINDS]
        self.world.pay([(wallet, COIN + number) for wallet in self.wallets for number in range(4)])
        self.world.mine(3)
        # The blocks of the node have work, although little.
        self.service = make_service(LocalUtxoNetwork("local", node.url, **{"proof_of_work": "scrypt", **network}))
        self.stores = build_over_nothing(self.service.settings.data_dir)
        self.tenant = self.service.tenant()
        self.subjects: dict[str, Any] = {}

    def time(self, number: int) -> datetime:
        """Return the median time past of a block."""
        header = self.node.rpc("getblockheader", self.node.block_hash(number))
        return datetime.fromtimestamp(header["mediantime"], UTC)

    def track(self, since: datetime, *wallets: str) -> None:
        """Track wallets from an instant on; default: all."""
        for wallet in wallets or self.wallets:
            self.subjects[wallet] = self.service.wallet(self.tenant, wallet, tracked_from=since)

    def build(self) -> None:
        """Run a cycle and an incremental build."""
        self.service.good_cycle()
        self.transform(self.stores)

    def transform(self, stores: Stores, *arguments: str) -> None:
        run_dbt(stores, *LATER_CYCLE, *arguments)
        with open_warehouse(stores.warehouse) as connection:
            ((batch_id,),) = connection.execute("select max(batch_id) from raw.batches").fetchall()
            record_transform(connection, batch_id, "tests")

    def ranges(self) -> dict[str, list[tuple[int, int]]]:
        """Return the covered blocks of each wallet."""
        found: dict[str, list[tuple[int, int]]] = {}
        for wallet, first, last in self.service.query(
            "select address, from_block, to_block from raw.coverage where subject_kind = 'native' order by all"
        ):
            found.setdefault(wallet, []).append((first, last))
        return found

    def check(self) -> None:
        """Assert that rows, readings, headers and balances are those of the chain."""
        self.check_collected()
        self.check_balances(ChainOracle(self.node), self.stores)

    def check_collected(self) -> None:
        """Assert that rows, readings and headers are those of the chain."""
        oracle = ChainOracle(self.node)
        self.check_rows(oracle)
        self.check_readings(oracle)

    def check_rows(self, oracle: ChainOracle) -> None:
        ranges = self.ranges()
        expected = []
        for wallet in self.subjects:
            for one in oracle.transactions(wallet):
                if any(first <= one.height <= last for first, last in ranges.get(wallet, [])):
                    spent = sum(output.amount for output in one.inputs if output.address == wallet)
                    received = sum(output.amount for output in one.outputs if output.address == wallet)
                    payers = {output.address or output.script for output in one.inputs}
                    if one.is_coinbase or not spent:
                        status = "NotPaid"
                    else:
                        status = "Paid" if payers == {wallet} else "Shared"
                    fee = one.fee if status == "Paid" else None
                    parties = (
                        {output.address or output.script for output in one.outputs if output.is_spendable}
                        if spent
                        else payers
                    ) - {wallet}
                    key = (one.height, oracle.hashes[one.height], one.index, one.txid, wallet)
                    expected.append((*key, spent, received, fee, status, len(parties)))
        rows = self.service.query(
            """
            select
                block_number, block_hash, transaction_index, transaction_hash, address, spent_raw::varchar,
                received_raw::varchar, fee_raw::varchar, fee_status, counterparty_count
            from raw.utxo_transactions
            """
        )
        found = [
            (*row[:5], int(row[5]), int(row[6]), None if row[7] is None else int(row[7]), *row[8:]) for row in rows
        ]
        assert sorted(found) == sorted(expected)

    def check_readings(self, oracle: ChainOracle) -> None:
        readings = self.service.query(
            "select holder_address, block_number, block_hash, quantity_raw::varchar from raw.balance_observations"
        )
        assert readings
        for wallet, number, block_hash, quantity in readings:
            assert (block_hash, int(quantity)) == (oracle.hashes[number], oracle.balance(wallet, number))
        headers = self.service.query("select block_number, block_hash, block_time from raw.blocks")
        for number, block_hash, time in headers:
            assert (block_hash, time.replace(tzinfo=UTC)) == (oracle.hashes[number], self.time(number))

    def check_balances(self, oracle: ChainOracle, stores: Stores) -> None:
        """Assert that each balance at each covered block is the chain's, and that nothing was adjusted."""
        with open_marts(stores) as connection:
            points = connection.execute(
                """
                select wallets.address, range_from_block, block_number, balance_raw::varchar, movement_raw::varchar
                from marts.balance_changes as changes
                inner join marts.wallets as wallets using (subject_key)
                where changes.token_address = 'native'
                order by all
                """
            ).fetchall()
            adjusted = connection.execute(
                "select * from marts.wallet_activities where transaction_hash is null"
            ).fetchall()
        assert adjusted == []
        known: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for wallet, range_from, number, balance, movement in points:
            # A range opens with what its first balance was before its first movement.
            steps = known.setdefault((wallet, range_from), [(range_from - 1, int(balance) - int(movement))])
            steps.append((number, int(balance)))
        newest = {}
        for wallet, ranges in self.ranges().items():
            for first, last in ranges:
                # Adjoining ranges are one in the marts.
                opened = max(at for one, at in known if one == wallet and at <= first)
                for number in range(first, last + 1):
                    newest[wallet] = [quantity for at, quantity in known[wallet, opened] if at <= number][-1]
                    assert newest[wallet] == oracle.balance(wallet, number), (wallet, number)
        assert newest == oracle.scan(self.subjects)


def spend(case: Case, number: int) -> None:
    """Queue payments of every form, different ones for each number."""
    world, wallets = case.world, case.wallets
    one, two = wallets[number % 5], wallets[(number + 1) % 5]
    world.pay({two: 10**6 + number}, senders=[one])
    # An old output, to strangers alone: only the spent output names the wallet.
    old = next(coin for coin in world.coins(wallets[(number + 2) % 5]) if coin.amount > 2_000)
    world.pay({world.address(): 1_000}, inputs=[old], fee=500, change=world.address())
    if number % 3 == 0:
        # To itself, by several inputs.
        world.pay([(two, 500)], inputs=sorted(world.coins(two), key=lambda coin: -coin.amount)[:2], change=two)
    if number % 3 == 1:
        # Several senders and recipients, data, and scripts without an address.
        outputs = [(one, 7_000), (world.multisig_script(), 600), (OPEN_SCRIPT, 700), (data_script(b"note"), 0)]
        world.pay(outputs, senders=[one, two], change=world.address())
    if number % 3 == 2:
        world.pay([(wallet, 20_000 + number) for wallet in wallets] * 3)
        # An output of the same block.
        world.pay({world.address(): 900}, inputs=world.coins(one)[-1:])


@pytest.mark.proof("wallets of outputs agree with their chain through reorganisations, pauses and lost blocks")
@pytest.mark.ci
def test_wallets_agree_with_the_chain_through_everything(node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    world = case.world
    first = node.head() - 1
    # A range from the past: older outputs are spent in it before the first scan.
    spend(case, 0)
    world.mine()
    spend(case, 1)
    world.mine(to=case.wallets[0])
    case.track(case.time(first))
    case.build()
    case.check()
    for number in range(2, 6):
        spend(case, number)
        world.mine()
        case.service.good_cycle()
    case.build()
    case.check()
    # A payment is replaced by another one that spends the same outputs.
    coins = [max(world.coins(case.wallets[1]), key=lambda coin: coin.amount)]
    world.pay({case.wallets[2]: 50_000}, inputs=coins)
    world.mine(2)
    case.build()
    world.reorganise(2, 3, lambda: world.pay({case.wallets[3]: 60_000}, inputs=coins))
    case.build()
    case.check()
    # Tracking pauses.
    subject = case.subjects[case.wallets[4]]
    case.service.track(case.tenant, subject, False, case.time(node.head()) + timedelta(seconds=1))
    world.mine(12)
    case.build()
    spend(case, 7)
    world.mine(12)
    case.build()
    case.service.track(case.tenant, subject, True, case.time(node.head()) + timedelta(seconds=1))
    world.mine(12)
    spend(case, 8)
    world.mine()
    case.build()
    case.check()
    # The node loses its newest blocks.
    node.kill()
    node.start()
    world.sync()
    spend(case, 9)
    world.mine(3)
    while node.head() <= case.service.query("select max(block_number) from raw.blocks")[0][0]:
        world.mine()
    case.build()
    case.check()


@pytest.mark.ci
def test_a_clean_collection_and_build_give_the_same(node: UtxoNode, make_service: MakeService, tmp_path: Path) -> None:
    case = Case(node, make_service)
    first = node.head()
    for number in range(3):
        spend(case, number)
        case.world.mine()
    case.track(case.time(first))
    case.build()
    for number in range(3, 6):
        spend(case, number)
        case.world.mine()
        case.service.good_cycle()
    case.build()
    case.check()
    rows = "select * exclude (batch_id) from raw.{} order by all"
    stepwise = {table: case.service.query(rows.format(table)) for table in ("utxo_transactions", "utxo_outputs")}
    stores = build_over_nothing(tmp_path / "clean")
    assert case.service.cycle(warehouse=stores.warehouse).error is None
    case.transform(stores, "--full-refresh")
    case.check_balances(ChainOracle(node), stores)
    for table, expected in stepwise.items():
        assert case.service.query(rows.format(table), warehouse=stores.warehouse) == expected


@pytest.mark.ci
def test_a_node_without_outputs_of_inputs_is_exact_from_now_on(bare_node: UtxoNode, make_service: MakeService) -> None:
    case = Case(bare_node, make_service)
    # The next block is the first one of the view: its outputs spent later are those of the scan.
    case.track(case.time(bare_node.head()) + timedelta(seconds=1))
    case.service.good_cycle()
    for number in range(6):
        spend(case, number)
        case.world.mine()
        case.service.good_cycle()
    case.build()
    oracle = ChainOracle(bare_node)
    case.check_readings(oracle)
    case.check_balances(oracle, case.stores)
    rows = case.service.query(
        "select distinct spent_raw = 0::bignum, fee_status, counterparties is null from raw.utxo_transactions"
    )
    # Own payments are known in full. The senders of received ones are unknown, although they are tracked as well: a row
    # must not show that a tenant tracks another wallet.
    assert set(rows) == {(False, "Paid", False), (False, "NotRead", False), (True, "NotRead", True)}


@pytest.mark.ci
def test_a_past_range_without_outputs_of_inputs_names_its_unread_blocks(
    bare_node: UtxoNode, make_service: MakeService
) -> None:
    case = Case(bare_node, make_service)
    first = bare_node.head() - 2
    spend(case, 0)
    case.world.mine(4)
    case.track(case.time(first))
    case.service.good_cycle()
    failures = case.service.query("select from_block, to_block, detail from raw.collection_failures")
    assert [(low <= first + 3 <= high, "booked by balance" in detail) for low, high, detail in failures] == [
        (True, True)
    ]
    # Readings are right anyway.
    case.check_readings(ChainOracle(bare_node))


@pytest.mark.ci
def test_history_from_the_first_block_needs_no_outputs_of_inputs(
    bare_node: UtxoNode, make_service: MakeService
) -> None:
    case = Case(bare_node, make_service)
    for number in range(3):
        spend(case, number)
        case.world.mine()
    case.track(case.time(bare_node.head()) + timedelta(seconds=1))
    case.world.mine(12)
    case.service.good_cycle()
    unread = case.service.query("select count(*) from raw.collection_failures")
    for subject in case.subjects.values():
        case.service.ask_history(case.tenant, subject, "block:1", native="full")
    for report in case.service.history():
        assert report.error is None
    spend(case, 3)
    case.world.mine()
    case.build()
    assert {ranges[0][0] for ranges in case.ranges().values()} == {1}
    case.check_readings(ChainOracle(bare_node))
    case.check_balances(ChainOracle(bare_node), case.stores)
    assert case.service.query("select count(*) from raw.collection_failures") == unread


def with_prevouts(node: UtxoNode) -> list[LieFault]:
    """Have a node give outputs of inputs with a block, in the form of other nodes."""

    def block(params: list[Any], result: Any) -> Any:
        if params[1] != 3:
            return result
        answer = node.rpc("getblock", params[0], 2)
        for transaction in answer["tx"]:
            for one in transaction["vin"]:
                if "txid" in one:
                    made = node.rpc("getrawtransaction", one["txid"], True)
                    spent = made["vout"][one["vout"]]
                    height = node.rpc("getblockheader", made["blockhash"])["height"]
                    one["prevout"] = {
                        "height": height,
                        "value": float(spent["value"]),
                        "scriptPubKey": spent["scriptPubKey"],
                    }
        return {"tx": [{"vin": transaction["vin"]} for transaction in answer["tx"]]}

    return [
        LieFault(methods=["getblock"], tell=block),
        LieFault(methods=["help"], tell=lambda _, result: f"{result} prevout"),
        LieFault(methods=["getindexinfo"], tell=lambda *_: {}),
    ]


def test_outputs_of_inputs_may_come_with_the_block(node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    first = node.head()
    for number in range(3):
        spend(case, number)
        case.world.mine()
    with FaultProxy(node.url) as proxy:
        proxy.inject(*with_prevouts(node))
        case.service.point_at("local", proxy.url)
        case.track(case.time(first))
        case.service.good_cycle()
        # Only the outputs of the wallets and of their transactions are proven.
        assert proxy.count("getrawtransaction") <= 20
        case.check_collected()


@pytest.mark.ci
def test_native_balances_are_scanned_once_a_day(node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    with FaultProxy(node.url) as proxy:
        case.service.point_at("local", proxy.url)
        case.track(case.time(node.head()) + timedelta(seconds=1), case.wallets[0])
        case.world.mine(12)
        for _ in range(2):
            case.service.good_cycle()
        assert proxy.count("scantxoutset") == 1
        # A second scan shows outputs that the first one left out.
        case.world.mine()
        case.service.good_cycle()
        scans = proxy.count("scantxoutset")
        assert scans == 2
        for number in range(5):
            case.world.pay({case.wallets[0]: 10**6 + number})
            case.world.mine()
            case.service.good_cycle()
        assert proxy.count("scantxoutset") == scans
        # A new wallet is scanned at once and alone.
        case.track(case.time(node.head()) + timedelta(seconds=1), case.wallets[1])
        case.world.mine(12)
        case.service.good_cycle()
        *_, (_, scripts) = [params for method, params in proxy.calls if method == "scantxoutset"]
        assert len(scripts) == 1
        case.world.mine()
        case.service.good_cycle()
        scans += 2
        assert proxy.count("scantxoutset") == scans
        case.world.mine(24 * 3600 // node.step_seconds)
        case.service.good_cycle()
        assert proxy.count("scantxoutset") == scans + 1
        case.service.good_cycle()
        assert proxy.count("scantxoutset") == scans + 1
        # On request, both wallets are scanned at once.
        assert run_check(case.service.settings, "local") == 2
        case.world.mine()
        case.service.good_cycle()
        assert proxy.count("scantxoutset") == scans + 2
        case.service.good_cycle()
        assert proxy.count("scantxoutset") == scans + 2
    case.check_collected()


def changed(text: str, old: bytes, new: bytes) -> str:
    """Replace bytes in hexadecimal text."""
    assert text.count(old.hex()) >= 1
    return text.replace(old.hex(), new.hex())


def amount(units: int) -> bytes:
    return units.to_bytes(8, "little")


def left_out(text: str) -> str:
    """Remove the last transaction of a block with two, which is the shorter way to a consistent count."""
    raw = bytes.fromhex(text)
    assert raw[80] == 2
    return (raw[:80] + b"\1" + raw[81:]).hex()


PAID = 1_234_567


LIES = {
    "an amount": ("getblock", lambda _, text: changed(text, amount(PAID), amount(PAID + 1)), "Merkle root"),
    "a left-out transaction": ("getblock", lambda _, text: left_out(text), "after the last transaction"),
    "no block": ("getblock", lambda *_: "00", "a header of 1 bytes"),
    "a false time": (
        "getblockheader",
        lambda params, text: text[:136] + "00000001" + text[144:] if params[1] is False else text,
        "header of another block",
    ),
    "an output of a scan": (
        "scantxoutset",
        lambda _, result: {
            **result,
            "unspents": [{**one, "amount": 21} for one in result["unspents"]],
        },
        "an output that its transaction does not have",
    ),
    "a spent output": (
        "getrawtransaction",
        lambda params, text: changed(text, b"\2\0\0\0", b"\1\0\0\0") if len(params) == 2 else text,
        "another transaction",
    ),
}


@pytest.mark.proof("a false answer of a Bitcoin-like node is refused and nothing is stored")
@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_and_nothing_is_stored(lie: str, node: UtxoNode, make_service: MakeService) -> None:
    method, tell, words = LIES[lie]
    case = Case(node, make_service)
    case.world.mine(12)
    first = node.head() + 1
    case.world.pay({case.wallets[0]: PAID})
    case.world.mine()
    with FaultProxy(node.url) as proxy:
        case.service.point_at("local", proxy.url)
        case.track(case.time(first))
        proxy.inject(LieFault(methods=[method], tell=tell))
        case.service.cycle()
        ((told,),) = case.service.query("select detail from raw.network_states")
        assert words in told
        assert case.service.query("select count(*) from raw.utxo_transactions") == [(0,)]
        proxy.clear()
        case.service.good_cycle()
    case.check_collected()


@pytest.mark.ci
def test_a_pruned_node_names_the_block_that_it_lacks(node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    first = node.head() - 5
    with FaultProxy(node.url) as proxy:
        case.service.point_at("local", proxy.url)
        pruned = RpcFault(methods=["getblock"], code=-1, message="Block not available (pruned data)")
        proxy.inject(pruned)
        case.track(case.time(first))
        report = case.service.cycle()
        assert report.error is not None
        assert "lacks the state or history of the block" in report.error
        proxy.clear()
        case.service.good_cycle()
    case.check_collected()


@pytest.mark.ci
def test_a_node_that_still_reads_the_chain_says_so(node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    with FaultProxy(node.url) as proxy:
        case.service.point_at("local", proxy.url)
        proxy.inject(LieFault(methods=["getblockchaininfo"], tell=lambda _, result: {**result, "headers": 10_000}))
        case.track(case.time(node.head() - 3))
        report = case.service.cycle()
        assert report.error is not None
        assert f"it has block {node.head()} of 10000" in report.error


@pytest.mark.ci
def test_payments_out_of_the_extension_are_plain_movements(make_service: MakeService) -> None:
    with UtxoNode(mweb=True) as node:
        traffic = MwebTraffic(node)
        service = make_service(LocalUtxoNetwork("local", node.url))
        tenant = service.tenant()
        receiver = str(node.rpc("getnewaddress", "", "bech32"))
        opened = datetime.fromtimestamp(node.rpc("getblockheader", node.block_hash(node.head()))["mediantime"], UTC)
        service.wallet(tenant, receiver, tracked_from=opened)
        traffic.pay_out(receiver, "0.7")
        traffic.pay_in("3")
        node.mine(traffic.address, 3)
        service.good_cycle()
        ((received, status, others),) = service.query(
            "select received_raw::varchar, fee_status, counterparties from raw.utxo_transactions"
        )
        assert (received, status, others) == ("70000000", "NotPaid", [])
        oracle = ChainOracle(node)
        assert oracle.scan([receiver]) == {receiver: 70_000_000}


@pytest.mark.proof("clients see each transaction of a Bitcoin-like wallet once")
def test_clients_see_each_transaction_once(
    node: UtxoNode, make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RPC_URL", node.url)
    case = Case(node, make_service)
    one, two, three, *_ = case.wallets
    case.track(case.time(node.head()) + timedelta(seconds=1), one)
    case.world.mine(12)
    case.build()
    paid = case.world.pay({two: 10**6}, senders=[one], fee=1_500)
    kept = case.world.pay([(one, 1)], inputs=case.world.coins(one)[:2], change=one, fee=700)
    shared = case.world.pay({three: 5_000}, senders=[one, two], fee=900, change=two)
    mined = case.world.mine(to=one)
    case.build()
    shutil.copyfile(case.stores.marts, case.service.settings.marts_path)
    publish(case.service.settings.marts_path, case.service.settings.serving_dir, 1)
    oracle = ChainOracle(node)
    with TestClient(create_app(load_settings(case.service.variables))) as client:
        client.headers["Authorization"] = f"Bearer {case.service.bearer(case.tenant)}"
        wallet = f"/v1/wallets/{case.subjects[one].id}"
        rows = {row["transactionHash"]: row for row in client.get(f"{wallet}/activities").json()["data"]}
        assert set(rows) == {tx.txid for tx in oracle.transactions(one) if tx.height >= mined}
        fields = ("type", "amountRaw", "feeRaw", "feeStatus", "counterparty", "counterpartyStatus", "blockNumber")
        told = {hash_: tuple(rows[hash_][field] for field in fields) for hash_ in (paid, kept)}
        assert told == {
            paid: ("TransferOut", str(10**6), "1500", "Paid", two, "Known", mined),
            kept: ("Self", "0", "700", "Paid", None, "None", mined),
        }
        # Of several senders each one's net is shown, with its part of the fee.
        net = next(tx.net[one] for tx in oracle.transactions(one) if tx.txid == shared)
        assert (rows[shared]["amountRaw"], rows[shared]["feeStatus"]) == (str(-net), "Shared")
        (coinbase,) = (row for row in rows.values() if row["type"] == "Coinbase")
        detail = client.get(f"{wallet}/activities/{coinbase['id']}").json()["transaction"]
        assert detail["spendableFromBlock"] == mined + 100
        detail = client.get(f"{wallet}/activities/{rows[paid]['id']}").json()["transaction"]
        (transaction,) = (tx for tx in oracle.transactions(one) if tx.txid == paid)
        assert [(side["address"], int(side["amountRaw"])) for side in detail["outputs"]] == [
            (output.address, output.amount) for output in transaction.outputs
        ]
        assert [(side["output"], int(side["amountRaw"])) for side in detail["inputs"]] == [
            (f"{output.txid}:{output.index}", output.amount) for output in transaction.inputs
        ]
        assert datetime.fromisoformat(detail["headerTime"]).timestamp() == oracle.times[mined]
        assert datetime.fromisoformat(rows[paid]["date"]) == case.time(mined)
        (position,) = client.get(f"{wallet}/balances").json()["current"]
        assert position["quantityRaw"] == str(oracle.balance(one, oracle.head))
        refused = client.post("/v1/tokens", json={"ledger": "local", "symbol": "LTC", "ledgerId": "native"})
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "native-asset")
        attested = client.post(f"{wallet}/attestations", json={"asOf": f"block:{mined}"})
        assert (attested.status_code, attested.json()["code"]) == (422, "no-archive")
        (network,) = client.get("/v1/networks").json()["data"]
        assert network["capabilities"] == {"internalTransfers": False, "archive": False, "inputAddresses": True}
