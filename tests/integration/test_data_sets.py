"""History from files of data sets: equal to history from the node, and every lie of a file is found and named."""

import random
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import unquote

import pytest
from litestar.testing import TestClient

from api.app import create_app
from control.networks.data_sets import DataSet
from control.operations import Status
from pipelines.data_sets import staged, staging
from tests.chain.fault_proxy import FaultProxy, RpcFault
from tests.chain.node import AnvilNode
from tests.datasets import damage
from tests.datasets.chain_files import write_aws, write_cryo, write_ethereum_etl, write_own
from tests.datasets.object_proxy import ObjectProxy, Spoilt
from tests.datasets.object_store import ObjectStore
from tests.integration.conftest import MakeService
from tests.integration.harness import Service
from tests.integration.past import (
    FINALITY,
    Chain,
    Tables,
    check_equal,
    collect,
    configure,
    network,
    stored,
)
from tests.integration.read_files import read_until_killed
from tests.integration.warm_processes import run_forked

OWN_COLUMNS = {
    "block_number": "blk",
    "block_hash": "hash",
    "block_time": "at",
    "transaction_index": "ix",
    "transaction_hash": "tx",
    "log_index": "pos",
    "token_address": "token",
    "from_address": "sender",
    "to_address": "receiver",
    "amount": "amount",
}
_CRYO = "network_31337__{table}__{first}_to_{last}.parquet"
_ETL = "{table}/start_block={first}/end_block={last}/{table}_{first}_{last}"


@dataclass(frozen=True)
class Form:
    """A form: writes the files of a chain into a folder, and the data set that names them."""

    write: Callable[[AnvilNode, Path], list[Path]]
    form: str
    files: str

    def data_set(self, folder: Path | str) -> DataSet:
        return DataSet("past", self.form, f"{folder}/{self.files}", OWN_COLUMNS if self.form == "columns" else {})


FORMS = {
    "aws": Form(lambda node, folder: write_aws(node, folder), "aws", "logs/date={date}/*.parquet"),
    "cryo logs in bytes": Form(lambda node, folder: write_cryo(node, folder, blocks_per_file=10), "cryo-logs", _CRYO),
    "cryo logs in text": Form(
        lambda node, folder: write_cryo(node, folder, binary=False, blocks_per_file=10), "cryo-logs", _CRYO
    ),
    "cryo transfers": Form(lambda node, folder: write_cryo(node, folder, blocks_per_file=10), "cryo-transfers", _CRYO),
    "cryo transfers in decimals": Form(
        lambda node, folder: write_cryo(node, folder, amounts="string", blocks_per_file=10), "cryo-transfers", _CRYO
    ),
    "ethereum-etl CSV": Form(
        lambda node, folder: write_ethereum_etl(node, folder, blocks_per_file=10), "ethereum-etl", f"{_ETL}.csv"
    ),
    "ethereum-etl Parquet": Form(
        lambda node, folder: write_ethereum_etl(node, folder, file_format="parquet", blocks_per_file=10),
        "ethereum-etl",
        f"{_ETL}.parquet",
    ),
    "own columns": Form(
        lambda node, folder: write_own(node, folder, blocks_per_file=10), "columns", "transfers_{first}_{last}.parquet"
    ),
}


@pytest.fixture(scope="module")
def from_node(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    service = Service(tmp_path_factory.mktemp("node") / "service", [network(chain.node.url)], {})
    collect(service, chain)
    yield stored(service)
    service.close()


_MARKS = {"cryo logs in bytes": [], "ethereum-etl CSV": [pytest.mark.ci]}


@pytest.mark.proof("history from files equals history from the node")
@pytest.mark.parametrize(
    "form",
    [pytest.param(form, id=name, marks=_MARKS.get(name, [pytest.mark.release])) for name, form in FORMS.items()],
)
def test_rows_equal_those_of_the_node(
    form: Form, chain: Chain, from_node: Tables, make_service: MakeService, tmp_path: Path
) -> None:
    form.write(chain.node, tmp_path / "files")
    with FaultProxy(chain.node.url) as proxy:
        service = make_service(network(proxy.url, form.data_set(tmp_path / "files")))
        collect(service, chain)
    check_equal(service, from_node)
    refused = service.query("select detail from raw.collection_failures")
    assert refused == []
    ranges = service.query("select distinct data_set, provider from raw.coverage where data_set is not null")
    assert ranges == [("past", "data set past")]
    states = service.query("select status, count(*) from raw.data_files group by status")
    assert dict(states).keys() <= {"Read", "Listed"}, service.query("select file, status, detail from raw.data_files")


@dataclass(frozen=True)
class Lie:
    """A lie in a file of own columns, and the pattern of the refusal."""

    tell: Callable[[Path], None]
    told: str


def _last(path: Path) -> int:
    return len(damage.read_rows(path)) - 1


def _of_another_block(path: Path) -> None:
    damage.change_amount(path, _last(path), "blk", 1_000_000)


LIES = {
    "a changed amount": Lie(
        lambda path: damage.change_amount(path, 3, "amount"),
        r"amount_raw of the row of block \d+, transaction index \d+, log index \d+ is \d+, on the chain it is \d+; "
        r"the receipts .* prove it",
    ),
    "an omitted row": Lie(
        lambda path: damage.omit_row(path, 3),
        r"the row of block \d+, transaction index \d+, log index \d+ is on the chain and not in the file; the receipts",
    ),
    "a doubled row": Lie(
        lambda path: damage.double_row(path, 3, other_index=True, index_column="pos"),
        r"the row of block \d+, transaction index \d+, log index \d+ is in the file and not on the chain; the receipts",
    ),
    "two rows of one event": Lie(
        lambda path: (damage.double_row(path, 3, other_index=False), damage.change_amount(path, 3, "amount"))[0],
        r"the row of block \d+, transaction index \d+, log index \d+ appears twice, with different values",
    ),
    "another chain": Lie(
        lambda path: damage.other_hashes(path, "hash"), r"block \d+ has another hash than on the chain: the file is of"
    ),
    "blocks to come": Lie(_of_another_block, r"it has rows of block 10000\d\d, and the chain ends at block \d+$"),
    "floating-point amounts": Lie(
        lambda path: damage.as_double(path, "amount"),
        "its column amount is DOUBLE: a floating-point number is not exact",
    ),
    "a lost column": Lie(lambda path: damage.drop_column(path, "pos"), "it lacks the column pos$"),
    "a cut file": Lie(damage.truncate_file, "it is damaged, or not of the form that its columns promise$"),
}


@pytest.mark.proof("each lie in a file is found and named, and leaves no row")
def test_each_lie_is_found_and_named_and_leaves_nothing(
    chain: Chain, from_node: Tables, make_service: MakeService, tmp_path: Path
) -> None:
    """Each lie is in a file of its own; a true file is before them."""
    form, firsts = FORMS["own columns"], range(4, 4 * len(LIES) + 1, 4)
    write_own(chain.node, tmp_path / "files", blocks_per_file=4)
    told = {}
    for first, lie in zip(firsts, LIES.values(), strict=True):
        path = tmp_path / "files" / f"transfers_{first}_{first + 3}.parquet"
        lie.tell(path)
        told[path.name] = f"^past: {path.name}: {lie.told}"
    service = make_service(network(chain.node.url, form.data_set(tmp_path / "files")))
    collect(service, chain)
    found = dict(
        service.query("select parse_filename(file), detail from raw.data_files where status = 'Refused' order by all")
    )
    assert found.keys() == told.keys()
    assert {name: text for name, text in found.items() if not re.search(told[name], text)} == {}
    check_equal(service, from_node)
    # The node was asked for these final blocks and no others.
    of_node = service.query(
        "select from_block, to_block from raw.coverage where data_set is null and subject_kind = 'token' "
        "and from_block <= ?",
        [chain.head - FINALITY],
    )
    assert {block for first, last in of_node for block in range(first, last + 1)} == set(range(4, firsts[-1] + 4))
    assert service.query("select count(*) from raw.disputed_answers") == [(0,)], "the proofs decided"


def refused(service: Service) -> list[str]:
    """Return the reasons of the refusals."""
    return [text for (text,) in service.query("select detail from raw.data_files where status = 'Refused'")]


@pytest.mark.proof("a file that differs from the node without proof is disputed until a reading decides")
def test_without_a_proof_the_network_is_inconsistent_until_a_reading_decides(
    chain: Chain, from_node: Tables, make_service: MakeService, tmp_path: Path
) -> None:
    form = FORMS["own columns"]
    form.write(chain.node, tmp_path / "files")
    damage.change_amount(tmp_path / "files" / "transfers_10_19.parquet", 3, "amount")
    with FaultProxy(chain.node.url) as proxy:
        proxy.inject(RpcFault(methods=["eth_getBlockReceipts", "eth_getTransactionReceipt"], code=-32601, message="no"))
        service = make_service(network(proxy.url, form.data_set(tmp_path / "files")))
        configure(service, chain)
        service.history()
        assert "the node says so, and no proof decides" in refused(service)[0]
        assert service.query("select count(*) > 0 from raw.disputed_answers") == [(True,)]
        service.good_cycle()
        # The second reading agrees with the node's rows, two against one, and the file stays refused.
        service.good_cycle()
        assert service.query("select count(*) from raw.disputed_answers") == [(0,)]
        assert service.query("select status from raw.network_states") == [("Healthy",)]
        assert "1 files of data sets are refused" in service.query("select detail from raw.network_states")[0][0]
    check_equal(service, from_node)


@pytest.mark.proof("a refused file is read once it is repaired")
def test_a_repaired_file_is_read(chain: Chain, from_node: Tables, make_service: MakeService, tmp_path: Path) -> None:
    form = FORMS["own columns"]
    form.write(chain.node, tmp_path / "files")
    path = tmp_path / "files" / "transfers_10_19.parquet"
    whole = path.read_bytes()
    damage.truncate_file(path)
    service = make_service(network(chain.node.url, form.data_set(tmp_path / "files")))
    configure(service, chain)
    service.history(parts=8)
    assert len(refused(service)) == 1
    path.write_bytes(whole)
    service.history()
    service.good_cycle()
    assert refused(service) == []
    check_equal(service, from_node)


@pytest.mark.release
def test_doubled_rows_of_one_event_count_once(
    chain: Chain, from_node: Tables, make_service: MakeService, tmp_path: Path
) -> None:
    form = FORMS["aws"]
    form.write(chain.node, tmp_path / "files")
    # A day's compaction leaves the old file beside the new one for a while.
    for path in sorted((tmp_path / "files" / "logs").glob("*/*.parquet"))[1:3]:
        path.with_name("part-00001.parquet").write_bytes(path.read_bytes())
    service = make_service(network(chain.node.url, form.data_set(tmp_path / "files")))
    collect(service, chain)
    check_equal(service, from_node)
    doubled = service.query("select count(*) from raw.data_files where duplicate_count > 0")
    assert doubled == [(4,)]


@pytest.mark.release
@pytest.mark.parametrize("kills", [4, 100])
def test_a_killed_read_goes_on_where_it_was(
    kills: int, chain: Chain, from_node: Tables, make_service: MakeService, tmp_path: Path
) -> None:
    form = FORMS["own columns"]
    write_own(chain.node, tmp_path / "files", blocks_per_file=60)
    data_set = form.data_set(tmp_path / "files")
    service = make_service(network(chain.node.url, data_set), name="killed")
    configure(service, chain)
    chance = random.Random(kills)
    killed, most = 0, 300
    while killed < kills:
        statements = chance.randrange(20, most)
        done = run_forked(read_until_killed, (tmp_path / "killed", chain.node.url, data_set, statements))
        if done.returncode == 0:
            most = max(statements, 21)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        killed += 1
    service.history()
    service.good_cycle()
    check_equal(service, from_node)


@pytest.mark.proof("a read of a file continues after its last part")
def test_a_staged_file_is_not_read_again(chain: Chain, make_service: MakeService, tmp_path: Path) -> None:
    form = FORMS["own columns"]
    write_own(chain.node, tmp_path / "files", blocks_per_file=60)
    service = make_service(network(chain.node.url, form.data_set(tmp_path / "files")))
    configure(service, chain)
    read: list[int] = []
    stage_rows = staging._stage_rows

    def counted(*arguments: Any) -> int:
        read.append(1)
        return stage_rows(*arguments)

    with mock.patch.object(staging, "_stage_rows", counted), mock.patch.object(staged, "ROWS_PER_PART", 7):
        for _ in range(5):
            service.history(parts=4)
        assert service.query("select count(*) from raw.coverage where data_set is not null") != [(0,)]
    assert len(read) == 1


@pytest.mark.proof("rows of a file that a later request wants are checked too")
def test_a_later_request_is_checked_too(chain: Chain, make_service: MakeService, tmp_path: Path) -> None:
    """Rows of a staged file that an earlier request did not want are not checked yet."""
    form = FORMS["own columns"]
    write_own(chain.node, tmp_path / "files", blocks_per_file=60)
    # The second half of the token's rows is wrong, and no request wants it at first.
    path = tmp_path / "files" / "transfers_0_59.parquet"
    rows = damage.read_rows(path)
    of_gold = [number for number, row in enumerate(rows) if row["token"] == chain.gold.address]
    wrong = of_gold[-1]
    damage.change_amount(path, wrong, "amount")
    service = make_service(network(chain.node.url, form.data_set(tmp_path / "files")))
    tenant = service.tenant()
    token = service.token(tenant, chain.gold.address)
    service.ask_history(tenant, token, "block:0", f"block:{rows[wrong]['blk'] - 1}")
    service.good_cycle()
    with mock.patch.object(staged, "ROWS_PER_PART", 3):
        service.history(parts=5)
        assert service.query("select count(*) from raw.coverage where data_set is not null") != [(0,)]
        service.ask_history(tenant, token, "block:0")
        service.good_cycle()
        service.history()
    assert "amount_raw of the row of block" in refused(service)[0]
    amounts = service.query(
        "select amount_raw::varchar from raw.token_transfers where block_number = ?", [rows[wrong]["blk"]]
    )
    assert (str(int(rows[wrong]["amount"]) + 1),) not in amounts
    assert amounts


@pytest.mark.release
def test_only_the_folder_of_the_data_set_is_read(
    chain: Chain, from_node: Tables, make_service: MakeService, tmp_path: Path
) -> None:
    """The folder itself may be a link; a link out of it is left out, and the node gives its blocks."""
    form = FORMS["own columns"]
    form.write(chain.node, tmp_path / "files")
    path = tmp_path / "files" / "transfers_10_19.parquet"
    path.rename(tmp_path / "elsewhere.parquet")
    path.symlink_to(tmp_path / "elsewhere.parquet")
    (tmp_path / "link").symlink_to(tmp_path / "files")
    service = make_service(network(chain.node.url, form.data_set(tmp_path / "link")))
    collect(service, chain)
    check_equal(service, from_node)
    listed = service.query("select count(*), count(*) filter (file like '%10_19%') from raw.data_files")
    assert listed[0][0] > 5
    assert listed[0][1] == 0


@pytest.fixture(scope="module")
def store(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A real S3 server with the files of AWS's form."""
    folder = tmp_path_factory.mktemp("aws")
    write_aws(chain.node, folder)
    with ObjectStore() as running:
        running.make_bucket("public")
        running.put_folder("public", "v1.0/eth", folder)
        yield running


@pytest.mark.proof("files of data sets are read from a store of objects")
def test_files_are_read_from_s3(
    store: ObjectStore, chain: Chain, from_node: Tables, make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in store.variables.items():
        monkeypatch.setenv(name, value)
    data_set = FORMS["aws"].data_set("s3://public/v1.0/eth")
    service = make_service(network(chain.node.url, data_set))
    configure(service, chain)
    store.stop()
    service.history()
    errors = service.query("select distinct error from raw.history_requests")
    assert errors == [("local: files: the store of the files does not answer, or refuses",)]
    assert service.query("select count(*) from raw.coverage") == [(0,)], "the node is not asked in its place"
    store.start()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    service.history()
    assert service.query("select distinct error from raw.history_requests") == errors
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", store.secret_key)
    service.history()
    service.good_cycle()
    check_equal(service, from_node)
    assert service.query("select count(*) > 0 from raw.coverage where data_set = 'past'") == [(True,)]


_SPOILT = {
    "refused": Spoilt(403, b"<Error><Code>AccessDenied</Code></Error>"),
    "gone": Spoilt(404, b"<Error><Code>NoSuchKey</Code></Error>"),
    "status 500": Spoilt(500, b""),
    "a part": Spoilt(cut_after=100),
    "another file": Spoilt(body=b"PAR1" + bytes(4000)),
    "an error as a success": Spoilt(body=b"<Error><Code>InternalError</Code></Error>"),
}


@pytest.mark.proof("a file that the store does not give hides no other file")
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[pytest.mark.release] * (way != "refused"), id=way) for way in _SPOILT]
)
def test_a_file_that_the_store_does_not_give_hides_no_other(
    way: str,
    store: ObjectStore,
    chain: Chain,
    from_node: Tables,
    make_service: MakeService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ObjectProxy(store.port) as proxy:
        for name, value in (store.variables | {"AWS_ENDPOINT_URL": proxy.url}).items():
            monkeypatch.setenv(name, value)
        service = make_service(network(chain.node.url, FORMS["aws"].data_set("s3://public/v1.0/eth")))
        configure(service, chain)
        service.history(1)
        # The first day has the genesis block alone, the next three have all rows.
        _, (before,), (spoilt,), (after,), *_ = service.query("select file from raw.data_files order by file")
        path = spoilt.removeprefix("s3:/")
        proxy.spoil = lambda asked: _SPOILT[way] if unquote(asked) == path else None
        service.history()
        service.good_cycle()
        check_equal(service, from_node)
        read = service.query("select file from raw.data_files where status = 'Read' order by file")
        assert read == [(before,), (after,)]
        reasons = service.query(
            """
            select reason from raw.unread_units where unit_kind = 'file'
            union all
            select detail from raw.data_files where status = 'Refused'
            """
        )
        assert len(reasons) == 1
        ((detail,),) = service.query("select detail from raw.network_states")
        assert "of data sets" in detail


@pytest.mark.release
def test_files_in_command_coverage_and_dry_run(chain: Chain, make_service: MakeService, tmp_path: Path) -> None:
    """`ledgermart backfill` reads files; coverage names them, and a dry run for another token counts them."""
    form = FORMS["aws"]
    write_aws(chain.node, tmp_path / "files", tables=["logs"])
    # The first day has the genesis block alone.
    files = sorted((tmp_path / "files").rglob("*.parquet"))[1:]
    service = make_service(network(chain.node.url, form.data_set(tmp_path / "files")))
    tenant = service.tenant()
    gold, coin = service.token(tenant, chain.gold.address), service.token(tenant, chain.coin.address)
    asked = service.ask_history(tenant, gold, "creation")
    done = service.ledgermart("backfill")
    assert done.returncode == 0, done.stderr
    assert service.operation(asked).status is Status.SUCCEEDED
    with TestClient(create_app(service.settings)) as client:
        client.headers["Authorization"] = f"Bearer {service.bearer(tenant)}"
        coverage = client.get(f"/v1/tokens/{gold.id}/coverage").json()
        answer = client.post(
            f"/v1/tokens/{coin.id}/history-requests", json={"from": "block:1", "to": "now", "dryRun": True}
        ).json()
    assert {one["source"] for one in coverage["collected"]} == {"node, past"}
    found = answer["files"]
    assert (found["dataSets"], found["files"], found["days"]) == (["past"], len(files), len(files))
    assert found["bytes"] == sum(path.stat().st_size for path in files)
    assert found["requests"] is not None
    assert 0 < found["blocks"] < answer["blocks"] == chain.head
