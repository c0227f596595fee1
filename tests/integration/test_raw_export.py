"""`ledgermart export --raw`: files with exactly a network's final facts, at one moment, complete or absent."""

import fcntl
import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from control.networks.data_sets import DataSet
from control.networks.in_force import networks_in_force
from control.ranges import BlockRange
from control.settings import load_settings
from pipelines.chain.covered import cut
from pipelines.deliver import raw_export
from pipelines.deliver.export import ExportError
from pipelines.deliver.raw_export import export_raw
from pipelines.extract.families import FAMILIES
from pipelines.tables.families import ROW_TABLES
from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.chain.world import MAX_UINT256, Token, World, call_data
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, LocalUtxoNetwork, Service
from tests.integration.warm_processes import run_forked
from tests.oracles.node import Oracle, instant
from warehouse.copies import Listener
from warehouse.lock import is_locked, writer_lock

SILENT = Listener(lambda _: None, lambda _: None, lambda _: None)
FORM = FAMILIES["evm"].data_set_forms["ledgermart"]
TABLES = (*FORM.rows, "coverage")
_MOST_ROWS = 15
Rows = list[dict[str, Any]]


class Collected:
    """A service with one collected chain; `first` is the first block of the windows, `stopped` the last of one.

    Two tokens and a wallet are tracked to the end.
    """

    def __init__(
        self, service: Service, node: AnvilNode, tokens: tuple[Token, Token], wallet: str, first: int, stopped: int
    ) -> None:
        self.service = service
        self.node = node
        self.tokens = tokens
        self.wallet = wallet
        self.first = first
        self.stopped = stopped
        self.final = int(node.rpc("eth_getBlockByNumber", ["finalized", False])["number"], 16)

    def export(self, folder: Path, **options: Any) -> dict[str, Any]:
        """Export the network in this process."""
        options = {"force": False, "copying": SILENT, "begins": lambda *_: None, **options}
        return export_raw(self.service.settings, self.service.networks["local"], folder, **options)


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collected]:
    """Two tenants over tokens and wallets; one token was tracked for some blocks alone. Only to be read."""
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        world = World(node, wallet_count=8, gas_price=10**9)
        world.place_multicall()
        gold = world.deploy_token("GOLD", 18)
        huge = world.deploy_token("HUGE", 77, supply=MAX_UINT256)
        brief = world.deploy_token("BRIEF", 2)
        payer = world.deploy("NestedPayer")
        world.distribute(gold, 1_000_000)
        world.distribute(brief, 1_000_000)
        first = node.head() + 1
        one, two, three, *_ = world.wallets
        world.transfer(huge, world.deployer, one, MAX_UINT256)
        world.transfer(huge, three, two, 0)
        world.mine()
        world.submit(one, payer, call_data("NestedPayer", "pay_deep", two, 4), value=5 * 10**18)
        world.submit(two, None, "0x6001600c60003960016000f300")
        world.submit(two, gold.address, "0xdeadbeef", value=1)
        world.mine()
        world.transfer_many(30, [gold, brief], per_block=5)
        stopped = node.head()
        for _ in range(6):
            world.mine()
        world.transfer_many(40, [gold, brief], per_block=5)
        for _ in range(60):  # the node calls the 64 newest blocks not final
            world.mine()
        network = LocalNetwork("local", node.url, finality_depth=4)
        utxo = LocalUtxoNetwork("outputs", "http://127.0.0.1:9")
        service = Service(tmp_path_factory.mktemp("raw") / "service", (network, LocalNetwork("second", None), utxo))
        acme, globex = service.tenant("acme"), service.tenant("globex")
        opened = instant(node, first)
        for tenant, token in ((acme, gold), (globex, gold), (globex, huge)):
            service.token(tenant, token.address, tracked_from=opened)
        row = service.token(acme, brief.address, tracked_from=opened)
        service.track(acme, row, False, instant(node, stopped + 1))
        service.wallet(acme, two, tracked_from=opened)
        service.good_cycle()
        yield Collected(service, node, (gold, huge), two, first, stopped)
        service.close()


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have exports make many small files."""
    monkeypatch.setattr(raw_export, "MOST_ROWS", _MOST_ROWS)


def ranges_in(folder: Path) -> dict[str, list[tuple[int, int]]]:
    """Return the ranges in the names of the files, by table, as an importer finds them."""
    found: dict[str, list[tuple[int, int]]] = {}
    for path in sorted(folder.glob("*.parquet")):
        table, first, last = path.stem.split("-")
        assert len(first) == len(last) >= 9
        found.setdefault(table, []).append((int(first), int(last)))
    return found


def rows_in(folder: Path, table: str) -> Rows:
    """Return the rows of all files of a table, in their order."""
    return [row for path in sorted(folder.glob(f"{table}-*.parquet")) for row in pq.read_table(path).to_pylist()]


def united(rows: Rows) -> list[tuple[Any, ...]]:
    """Unite adjoining rows of the coverage of several files."""
    found: list[tuple[Any, ...]] = []
    for row in sorted(rows, key=lambda row: (row["subject_kind"], row["address"], row["from_block"])):
        name, first, last = (row["subject_kind"], row["address"]), row["from_block"], row["to_block"]
        if found and found[-1][:2] == name and found[-1][3] + 1 == first:
            found[-1] = (*found[-1][:3], last)
        else:
            found.append((*name, first, last))
    return found


@pytest.mark.proof("a raw export has exactly the final facts of a network")
@pytest.mark.usefixtures("small_files")
def test_files_hold_exactly_the_final_facts_of_the_node(collected: Collected, tmp_path: Path) -> None:
    manifest = collected.export(tmp_path / "out")
    oracle = Oracle(collected.service, collected.node)
    transfers = rows_in(tmp_path / "out", "token_transfers")
    names = ["block_number", "log_index", "block_hash", "transaction_hash", "token_address", "from_address"]
    names += ["to_address", "amount_raw"]
    expected = [row for row in oracle.transfers() if row[0] <= collected.final]
    assert len(expected) > 2 * _MOST_ROWS
    assert len(expected) < len(oracle.transfers())
    assert [tuple(row[name] for name in names) for row in transfers] == [(*row[:7], str(row[7])) for row in expected]
    transactions = rows_in(tmp_path / "out", "transactions")
    names = ["block_number", "transaction_index", "transaction_hash", "from_address", "to_address", "created_address"]
    names += ["value_raw", "fee_raw", "gas_used", "is_success"]
    assert [tuple(row[name] for name in names) for row in transactions] == [
        (*row[:6], str(row[6]), str(row[7]), *row[8:]) for row in oracle.transactions() if row[0] <= collected.final
    ]
    assert {row["is_success"] for row in transactions} == {True, False}
    inner = rows_in(tmp_path / "out", "internal_transfers")
    assert [(row["block_number"], row["amount_raw"]) for row in inner] == [(collected.first + 1, str(5 * 10**18))]
    for row in (*transfers, *transactions, *inner):
        number = row["block_number"]
        time = datetime.fromtimestamp(oracle.times[number], UTC)
        assert (row["block_hash"], row["block_time"]) == (oracle.hashes[number], time)
    coverage = united(rows_in(tmp_path / "out", "coverage"))
    assert coverage == sorted(
        (kind, address, first, min(last, collected.final)) for _, kind, address, first, last in oracle.coverage()
    )
    assert {one[0] for one in coverage} == {"token", "wallet", "native"}
    assert collected.stopped in {one[3] for one in coverage}
    assert manifest["finalBlock"] == collected.final
    assert manifest == json.loads((tmp_path / "out" / "manifest.json").read_text())


def test_zero_and_the_largest_amount_are_exact_text(collected: Collected, tmp_path: Path) -> None:
    collected.export(tmp_path / "out")
    amounts = [row["amount_raw"] for row in rows_in(tmp_path / "out", "token_transfers")]
    assert amounts[:2] == [str(2**256 - 1), "0"]


@pytest.mark.usefixtures("small_files")
def test_ranges_adjoin_and_each_has_all_files_with_the_columns_of_the_form(
    collected: Collected, tmp_path: Path
) -> None:
    manifest = collected.export(tmp_path / "out")
    found = ranges_in(tmp_path / "out")
    assert found.keys() == set(TABLES)
    ranges = found["coverage"]
    assert all(found[table] == ranges for table in TABLES)
    assert len(ranges) > 2
    assert (ranges[0][0], ranges[-1][1]) == (collected.first, collected.final)
    assert [first for first, _ in ranges[1:]] == [last + 1 for _, last in ranges[:-1]]
    listed = [(file["file"], file["rows"]) for file in manifest["files"]]
    written = {path.name: pq.read_metadata(path).num_rows for path in (tmp_path / "out").glob("*.parquet")}
    assert dict(listed) == written
    assert len(listed) == len(written)
    # Each table but the coverage has a file without rows, which has the columns all the same.
    assert {name.split("-")[0] for name, rows in listed if rows == 0} >= {"transactions", "internal_transfers"}
    form: Mapping[str, Any] = {table.name: table.columns for table in FORM.rows.values()} | {
        "coverage": FORM.coverage.columns if FORM.coverage else {}
    }
    text = {"amount_raw", "value_raw", "fee_raw"}
    for name, _ in listed:
        table, first, last = name.removesuffix(".parquet").split("-")
        read = pq.read_table(tmp_path / "out" / name)
        assert read.column_names == list(form[table])
        for field in read.schema:
            assert field.name not in text or field.type == pa.string()
            assert field.name != "block_time" or field.type == pa.timestamp("us", tz="UTC")
        column = "from_block" if table == "coverage" else "block_number"
        assert all(int(first) <= number <= int(last) for number in read.column(column).to_pylist())
        assert table == "coverage" or read.num_rows <= _MOST_ROWS


def test_ranges_are_cut_between_blocks() -> None:
    whole = BlockRange(3, 90)
    assert list(cut([], whole, 10)) == [(whole, 0)]
    assert list(cut([(5, 6), (6, 4), (7, 1)], whole, 10)) == [(BlockRange(3, 6), 10), (BlockRange(7, 90), 1)]
    assert list(cut([(3, 11), (90, 1)], whole, 10)) == [(BlockRange(3, 89), 11), (BlockRange(90, 90), 1)]
    assert list(cut([(3, 1), (4, 11)], whole, 10)) == [(BlockRange(3, 3), 1), (BlockRange(4, 90), 11)]


@pytest.mark.proof("another installation reads the same rows from a raw export")
@pytest.mark.usefixtures("small_files")
def test_another_installation_reads_the_same_rows_from_the_files(
    collected: Collected, make_service: MakeService, tmp_path: Path
) -> None:
    collected.export(tmp_path / "out")
    data_set = DataSet("colleagues", "ledgermart", f"{tmp_path}/out/{{table}}-{{first}}-{{last}}.parquet")
    service = make_service(LocalNetwork("local", collected.node.url, finality_depth=4, data_sets=(data_set,)))
    tenant = service.tenant()
    first = f"block:{collected.first}"
    for token in collected.tokens:
        service.ask_history(tenant, service.token(tenant, token.address), first, f"block:{collected.final}")
    wallet = service.wallet(tenant, collected.wallet)
    service.ask_history(tenant, wallet, first, f"block:{collected.final}", native="full")
    service.good_cycle()
    service.history()
    service.good_cycle()
    assert service.query("select detail from raw.collection_failures") == []
    providers = service.query("select distinct subject_kind, provider from raw.coverage order by all")
    assert providers == [(kind, "data set colleagues") for kind in ("native", "token", "wallet")]
    found, original = service.raw_rows(), collected.service.raw_rows()
    places = {table: _place(table) for table in FORM.rows}
    addresses = {collected.wallet, *(token.address for token in collected.tokens)}
    for table, place in places.items():
        expected = [row for row in original[table] if row[place] <= collected.final and addresses & set(row)]
        assert expected
        assert found[table] == expected, table


def _place(table: str) -> int:
    """Return the position of the block's number in the rows of a raw table."""
    return [column.name for column in ROW_TABLES[table].columns].index("block_number")


@pytest.fixture
def copied(collected: Collected, tmp_path: Path) -> Collected:
    """The collected service with a warehouse of its own, to be changed."""
    data = tmp_path / "data"
    data.mkdir()
    original = collected.service.settings
    (data / "warehouse.duckdb").write_bytes(original.warehouse_path.read_bytes())
    own = Collected(
        collected.service, collected.node, collected.tokens, collected.wallet, collected.first, collected.stopped
    )
    own.export = lambda folder, **options: export_raw(  # type: ignore[method-assign]
        load_settings({"LEDGERMART_DATA_DIR": str(data)}),
        collected.service.networks["local"],
        folder,
        **{"force": False, "copying": SILENT, "begins": lambda *_: None, **options},
    )
    return own


def change(folder: Path, *statements: str) -> None:
    """Run statements in the warehouse of the fixture `copied`."""
    with closing(duckdb.connect(str(folder / "data" / "warehouse.duckdb"))) as connection:
        for statement in statements:
            connection.execute(statement)


def test_rows_without_coverage_are_left_out(copied: Collected, tmp_path: Path) -> None:
    gold = copied.tokens[0].address
    hole = copied.stopped - 1
    change(
        tmp_path,
        f"update raw.coverage set to_block = {hole - 1} where address = '{gold}'",
        f"""
        insert into raw.coverage
        select network, subject_kind, address, {hole + 1}, {copied.final}, 0, 'other', collected_at, batch_id, null
        from raw.coverage where address = '{gold}'
        """,
        "delete from raw.coverage where subject_kind = 'wallet'",
    )
    copied.export(tmp_path / "out")
    found = rows_in(tmp_path / "out", "token_transfers")
    assert hole not in {row["block_number"] for row in found if row["token_address"] == gold}
    assert {hole - 1, hole + 1} <= {row["block_number"] for row in found} | {row["block_number"] - 1 for row in found}
    ranges = [(row["from_block"], row["to_block"]) for row in rows_in(tmp_path / "out", "coverage")]
    assert {(copied.first, hole - 1), (hole + 1, copied.final)} <= set(ranges)


def test_adjoining_and_overlapping_coverage_is_one_range(copied: Collected, tmp_path: Path) -> None:
    copied.export(tmp_path / "before")
    gold = copied.tokens[0].address
    change(
        tmp_path,
        f"update raw.coverage set to_block = {copied.stopped} where address = '{gold}'",
        *(
            f"""
            insert into raw.coverage
            select network, subject_kind, address, {first}, {copied.final}, 0, 'other', collected_at, batch_id, null
            from raw.coverage where address = '{gold}' and provider != 'other' and provider != 'third'
            """
            for first in (copied.stopped + 1, copied.stopped - 3)
        ),
    )
    copied.export(tmp_path / "after")
    for table in TABLES:
        assert rows_in(tmp_path / "before", table) == rows_in(tmp_path / "after", table)


def test_a_row_without_header_is_an_error_and_not_left_out(copied: Collected, tmp_path: Path) -> None:
    change(tmp_path, f"delete from raw.blocks where block_number = {copied.first}")
    with pytest.raises(ExportError, match=r"lacks headers of 2 rows in blocks \d+ to \d+ of local; `ledgermart doctor"):
        copied.export(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_files_show_one_moment_and_no_cycle_waits_for_them(copied: Collected, tmp_path: Path) -> None:
    lock = tmp_path / "data" / "warehouse.lock"
    waiting: list[bool] = []

    def begins(_file: str, place: int, _count: int) -> None:
        if place == 0:
            with writer_lock(lock, "a cycle", 0):
                change(tmp_path, "delete from raw.token_transfers", "delete from raw.coverage")

    copying = Listener(lambda _: None, lambda _: waiting.append(_has_copy(lock)), lambda _: None)
    copied.export(tmp_path / "out", copying=copying, begins=begins)
    assert waiting == [True]
    assert rows_in(tmp_path / "out", "coverage")
    assert len(rows_in(tmp_path / "out", "token_transfers")) > _MOST_ROWS
    # The copy holds more than the facts, so it was deleted; others cannot read the folder.
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".parquet", ".json"}
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700


def _has_copy(lock: Path) -> bool:
    """Return whether a copy holds the lock, so that no writer can begin."""
    with lock.open("r") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return not is_locked(lock)
    return False


def run_until_killed(folder: Path, files: int, force: bool) -> None:
    """Export the network `local`; kill this process before one more than `files` files."""

    def begins(_file: str, place: int, _count: int) -> None:
        if place == files:
            os.kill(os.getpid(), signal.SIGKILL)

    raw_export.MOST_ROWS = _MOST_ROWS
    settings = load_settings()
    network = networks_in_force(settings)["local"]
    export_raw(settings, network, folder, force=force, copying=SILENT, begins=begins)


@pytest.mark.parametrize("files", [0, 6])
def test_a_killed_export_leaves_no_folder_and_keeps_the_earlier_one(
    collected: Collected, tmp_path: Path, files: int
) -> None:
    folder = tmp_path / "out"
    arguments = (folder, files, True)
    done = run_forked(run_until_killed, arguments, collected.service.environment())
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not folder.exists()
    assert len(list((tmp_path / ".out.partial").glob("*.parquet"))) == files
    assert not (tmp_path / ".out.partial" / "manifest.json").exists()
    collected.export(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = run_forked(run_until_killed, arguments, collected.service.environment())
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    collected.export(folder, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_command_lists_files_rows_and_blocks(collected: Collected, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = collected.service.ledgermart("export", "--raw", "local", "--out", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert (printed["network"], printed["firstBlock"], printed["lastBlock"]) == (
        "local",
        collected.first,
        collected.final,
    )
    assert printed["pattern"] == f"{folder}/{{table}}-{{first}}-{{last}}.parquet"
    assert {file["table"]: file["rows"] for file in printed["files"]}["token_transfers"] == len(
        rows_in(folder, "token_transfers")
    )
    assert {(file["firstBlock"], file["lastBlock"]) for file in printed["files"]} == {
        (collected.first, collected.final)
    }
    done = collected.service.ledgermart("export", "--raw", "local", "--out", str(folder))
    assert done.returncode == 2
    assert "already contains a raw export; --force replaces it" in done.stderr
    done = collected.service.ledgermart("export", "--raw", "local", "--out", str(folder), "--force")
    assert done.returncode == 0, done.stderr
    assert f"blocks {collected.first} to {collected.final} of local in {folder}" in done.stdout
    assert f'form = "ledgermart", files = "{printed["pattern"]}"' in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--raw", "nowhere"), "network 'nowhere' is not defined; there are local, second, outputs"),
        (("--raw", "outputs"), "network 'outputs' cannot be exported: networks of its family have no data sets"),
        (("--raw", "second"), "nothing was collected of network 'second'; `ledgermart status` lists networks"),
        (("--raw", "local", "--format", "csv"), "as Parquet: omit --format, --tenant, --mart"),
        (("--raw", "local", "--mart", "blocks"), "as Parquet: omit --format, --tenant, --mart"),
        (("--raw", "local", "--tenant", "acme"), "as Parquet: omit --format, --tenant, --mart"),
        (("--format", "csv"), "Missing option '--tenant'."),
        (("--tenant", "acme"), "Missing option '--format'."),
    ],
)
def test_each_wrong_call_is_one_sentence(
    collected: Collected, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    done = collected.service.ledgermart("export", *arguments, "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_network_without_final_blocks_or_a_warehouse_is_one_sentence(copied: Collected, tmp_path: Path) -> None:
    change(tmp_path, f"update raw.network_states set final_number = {copied.first - 1}")
    with pytest.raises(ExportError, match="no collected block of network 'local' is final yet; repeat the command"):
        copied.export(tmp_path / "out")
    (tmp_path / "data" / "warehouse.duckdb").unlink()
    with pytest.raises(ExportError, match="nothing was collected of network 'local'"):
        copied.export(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_other_folders_are_not_replaced(collected: Collected, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"kind": "ledgermart-export"}')
    with pytest.raises(ExportError, match="is not a raw export; name another folder with --out"):
        collected.export(tmp_path, force=True)
