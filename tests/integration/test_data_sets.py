"""History from files of data sets: equal to history from the node, and every lie of a file is found and named."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from control.networks.data_sets import DataSet
from tests.chain.conftest import GENESIS_TIME
from tests.chain.fault_proxy import FaultProxy
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World, call_data
from tests.datasets import damage
from tests.datasets.chain_files import write_aws, write_cryo, write_ethereum_etl, write_own
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service

_OWN_COLUMNS = {
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
FINALITY = 64
_CRYO = "network_31337__{table}__{first}_to_{last}.parquet"
_ETL = "{table}/start_block={first}/end_block={last}/{table}_{first}_{last}"


@dataclass(frozen=True)
class Chain:
    """A chain of some days with two tokens, an NFT and traffic of every kind, all of it final."""

    node: AnvilNode
    world: World
    gold: Token
    coin: Token
    head: int


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        world = World(node, wallet_count=6, block_seconds=7_200)
        world.place_multicall()
        gold = world.deploy_token("GOLD", 18, supply=2**255)
        coin = world.deploy_token("COIN", 6)
        nft = world.deploy("Nft721", "Art", "ART")
        world.distribute(gold, 2**200 + 1)
        world.distribute(coin, 100_000)
        for number in range(6):
            world.transfer_many(12, [gold, coin], per_block=4)
            world.submit(world.deployer, nft, call_data("Nft721", "mint", world.wallets[0], number))
            world.mine()
            world.mine()
        # The node calls a block final after 64 others.
        for _ in range(70):
            world.mine()
        yield Chain(node, world, gold, coin, node.head())


@dataclass(frozen=True)
class Form:
    """A form: writes the files of a chain into a folder, and the data set that names them."""

    write: Callable[[AnvilNode, Path], list[Path]]
    form: str
    files: str

    def data_set(self, folder: Path | str) -> DataSet:
        return DataSet("past", self.form, f"{folder}/{self.files}", _OWN_COLUMNS if self.form == "columns" else {})


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


def network(url: str, *data_sets: DataSet) -> LocalNetwork:
    return LocalNetwork("local", url, finality_depth=FINALITY, data_sets=data_sets)


def collect(service: Service, chain: Chain) -> None:
    """Request the whole past of both tokens and two wallets, and collect it."""
    tenant = service.tenant()
    first, second, *_ = chain.world.wallets
    for token in (chain.gold, chain.coin):
        service.ask_history(tenant, service.token(tenant, token.address), "block:0")
    for wallet in (first, second):
        service.ask_history(tenant, service.wallet(tenant, wallet), "block:0", native="balance-only")
    service.good_cycle()
    service.history()
    service.good_cycle()


def stored(service: Service) -> dict[str, list[tuple[object, ...]]]:
    """Everything that marts are computed from, by table."""
    rows = service.raw_rows()
    rows["covered_ranges"] = service.query("select * from raw.covered_ranges order by all")
    rows["blocks"] = service.query(
        """
        select block_number, block_hash, block_time from raw.blocks
        where block_number in (select block_number from raw.token_transfers) order by all
        """
    )
    return rows


@pytest.fixture(scope="module")
def from_node(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[tuple[object, ...]]]]:
    service = Service(tmp_path_factory.mktemp("node") / "service", [network(chain.node.url)], {})
    collect(service, chain)
    yield stored(service)
    service.close()


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
def test_rows_equal_those_of_the_node(
    form: Form, chain: Chain, from_node: dict[str, list[tuple[object, ...]]], make_service: MakeService, tmp_path: Path
) -> None:
    form.write(chain.node, tmp_path / "files")
    with FaultProxy(chain.node.url) as proxy:
        service = make_service(network(proxy.url, form.data_set(tmp_path / "files")))
        collect(service, chain)
    found = stored(service)
    for table, rows in from_node.items():
        assert found[table] == rows, table
    refused = service.query("select detail from raw.collection_failures")
    assert refused == []
    ranges = service.query("select distinct data_set, provider from raw.coverage where data_set is not null")
    assert ranges == [("past", "data set past")]
    states = service.query("select status, count(*) from raw.data_files group by status")
    assert dict(states).keys() <= {"Read", "Listed"}, service.query("select file, status, detail from raw.data_files")


@dataclass(frozen=True)
class Lie:
    """A lie: changes the file of blocks 10 to 19 of own columns, and what the refusal says of it."""

    tell: Callable[[Path], None]
    told: str


def _last(path: Path) -> int:
    return len(damage.read_rows(path)) - 1


def _of_another_block(path: Path) -> None:
    damage.change_amount(path, _last(path), "blk", 1_000_000)


LIES = {
    "a changed amount": Lie(
        lambda path: damage.change_amount(path, 3, "amount"),
        r"amount_raw of the row of block 1\d, log index \d+ is \d+, on the chain it is \d+; the receipts .* prove it",
    ),
    "an omitted row": Lie(
        lambda path: damage.omit_row(path, 3),
        r"the row of block 1\d, log index \d+ is on the chain and not in the file; the receipts",
    ),
    "a doubled row": Lie(
        lambda path: damage.double_row(path, 3, other_index=True, index_column="pos"),
        r"the row of block 1\d, log index \d+ is in the file and not on the chain; the receipts",
    ),
    "two rows of one event": Lie(
        lambda path: (damage.double_row(path, 3, other_index=False), damage.change_amount(path, 3, "amount"))[0],
        r"the row of block 1\d, log index \d+ appears twice, with different values",
    ),
    "another chain": Lie(
        lambda path: damage.other_hashes(path, "hash"), r"block 1\d has another hash than on the chain: the file is of"
    ),
    "blocks to come": Lie(_of_another_block, r"it has rows of block 10000\d\d, and the chain ends at block \d+$"),
    "floating-point amounts": Lie(
        lambda path: damage.as_double(path, "amount"),
        "its column amount is DOUBLE: a floating-point number is not exact",
    ),
    "a lost column": Lie(lambda path: damage.drop_column(path, "pos"), "it lacks the column pos$"),
    "a cut file": Lie(damage.truncate_file, "it is damaged, or not of the form that its columns promise$"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=list(LIES))
def test_a_lie_is_found_and_named_and_leaves_nothing(
    lie: Lie, chain: Chain, from_node: dict[str, list[tuple[object, ...]]], make_service: MakeService, tmp_path: Path
) -> None:
    form = FORMS["own columns"]
    form.write(chain.node, tmp_path / "files")
    lie.tell(tmp_path / "files" / "transfers_10_19.parquet")
    service = make_service(network(chain.node.url, form.data_set(tmp_path / "files")))
    collect(service, chain)
    refused = service.query("select file, detail from raw.data_files where status = 'Refused'")
    assert [Path(file).name for file, _ in refused] == ["transfers_10_19.parquet"]
    assert re.search(f"^past: transfers_10_19.parquet: {lie.told}", refused[0][1]), refused[0][1]
    found = stored(service)
    for table, rows in from_node.items():
        assert found[table] == rows, table
    # Of the final blocks, the node gave these and only these.
    of_node = """
        select distinct from_block, to_block from raw.coverage
        where data_set is null and subject_kind = 'token' and from_block <= ?
    """
    assert service.query(of_node, [chain.head - FINALITY]) == [(10, 19)]
    assert service.query("select count(*) from raw.disputed_answers") == [(0,)], "the proof decided"
