"""The protocol of network families, tested for each family on a real node.

Expected values are read from the node without the family's code. The contract is in `pipelines/extract/family.py`.
Behaviour of a single family has separate tests.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from control.ranges import BlockRange
from pipelines.extract.errors import (
    ChainReorganised,
    ExtractError,
    MalformedAnswer,
    NodeUnreachable,
    NotProvable,
    WrongChain,
)
from pipelines.extract.families import FAMILIES, family_of, open_node
from pipelines.extract.family import (
    BALANCE_CHANGES,
    BALANCES,
    HEADERS,
    METADATA,
    NATIVE,
    PAST_BALANCES,
    PROVABLE,
    SUPPLIES,
    BalanceRange,
    Node,
)
from pipelines.extract.headers import header_of
from pipelines.raw.database import open_warehouse
from pipelines.rows import Kind, Segment
from tests.integration.families import CHAINS, Chain

KINDS: tuple[Kind, ...] = ("token", "wallet", "native")
SECRET = "s3cret-key"


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def chain(family: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """A shared chain; tests must not change it."""
    with CHAINS[family](tmp_path_factory.mktemp(family)) as made:
        yield made


@pytest.fixture
def moving(family: str, tmp_path: Path) -> Iterator[Chain]:
    """A chain that a test may change."""
    with CHAINS[family](tmp_path) as made:
        yield made


@pytest.fixture
def node(chain: Chain) -> Iterator[Node]:
    with closing(open_node(chain.network)) as opened:
        opened.probe()
        yield opened


def some_kind(chain: Chain) -> Kind:
    """Return a kind that a node collects without a probe."""
    return max(chain.addresses)


def whole(chain: Chain, kind: Kind) -> Segment:
    return Segment(kind, BlockRange(chain.opening, chain.head()), (chain.addresses[kind],))


def collected(node: Node, segment: Segment, final_number: int = -1) -> dict[str, pl.DataFrame]:
    """Return the rows of a segment by table; assert that its parts cover its range."""
    parts = list(node.collect(segment, final_number))
    assert parts[0].covered.first == segment.covered.first
    assert parts[-1].covered.last == segment.covered.last
    for part, following in itertools.pairwise(parts):
        assert following.covered.first == part.covered.last + 1
    for part in parts:
        for rows in part.rows.values():
            assert rows["block_number"].is_between(*part.covered).all()
    return {name: pl.concat([part.rows[name] for part in parts]) for name in parts[0].rows}


def keys_of(node: Node, rows: dict[str, pl.DataFrame]) -> dict[str, set[tuple[object, ...]]]:
    """Return the keys of rows by table. Tables of no kind have notes of the family's own instead."""
    tables = {table.name: table for table in family_of(node.network).tables if table.kinds}
    return {name: set(rows[name].select(table.key).rows()) for name, table in tables.items() if name in rows}


def test_every_family_has_a_chain_to_be_tested_on() -> None:
    assert set(CHAINS) == set(FAMILIES)


def test_tables_declare_their_columns_keys_and_parties(chain: Chain, node: Node, tmp_path: Path) -> None:
    tables = family_of(chain.network).tables
    assert len({table.name for table in tables}) == len(tables)
    with open_warehouse(tmp_path / "warehouse.duckdb") as connection:
        for table in tables:
            rows = connection.execute("select column_name from duckdb_columns() where table_name = ?", [table.name])
            stored = {name for (name,) in rows.fetchall()}
            assert {*table.key, *table.parties, *table.addressed("token"), "block_number", "block_hash"} <= stored
            assert "block_number" in table.key
            assert table.description.endswith(".")
            for kind in table.kinds & chain.addresses.keys():
                columns = set(collected(node, whole(chain, kind))[table.name].columns)
                assert columns | {"network", "batch_id"} == stored


def test_probe_returns_capabilities_and_refuses_another_chain(chain: Chain, node: Node) -> None:
    capabilities = node.probe()
    assert isinstance(capabilities, frozenset)
    assert all(isinstance(name, str) for name in capabilities)
    with closing(open_node(chain.elsewhere())) as wrong, pytest.raises(WrongChain):
        wrong.probe()
    with closing(open_node(chain.elsewhere())) as wrong, pytest.raises(WrongChain):
        # The second reading uses a provider that was not probed.
        list(wrong.other().collect(whole(chain, some_kind(chain)), chain.head()))


def test_head_and_headers_are_the_nodes(chain: Chain, node: Node) -> None:
    head = node.head()
    assert head.number == chain.head()
    assert head.time.tzinfo == UTC
    numbers = [head.number, 1, head.number - 1, 1]
    headers = node.headers(numbers)
    assert headers.schema == HEADERS
    assert headers["block_number"].to_list() == sorted(set(numbers))
    assert header_of(headers.row(-1)) == head
    for number, *said, time in headers.iter_rows():
        block = chain.block(number)
        assert [*said, time] == [
            block.hash,
            block.parent_hash,
            datetime.fromtimestamp(block.time, UTC).replace(tzinfo=None),
        ]
    assert node.headers([]).schema == HEADERS
    with pytest.raises(MalformedAnswer, match=str(head.number + 1)):
        node.headers([head.number + 1])


def test_the_final_block_is_not_after_the_head(chain: Chain, node: Node) -> None:
    head = node.head()
    assert -1 <= node.final_number(head) <= head.number
    early = header_of(node.headers([1]).row(0))
    assert -1 <= node.final_number(early) <= 1


def test_block_at_is_the_first_one_at_or_after(chain: Chain, node: Node) -> None:
    head = node.head()
    times = [chain.block(number).time for number in range(head.number + 1)]
    instants = {time + shift for time in times for shift in (-1, 0, 1)}
    for instant in instants:
        expected = next((number for number, time in enumerate(times) if time >= instant), None)
        assert node.block_at(datetime.fromtimestamp(instant, UTC), head) == expected, instant
    assert node.block_at(head.time + timedelta(days=1), head) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_segment_is_collected_completely(kind: Kind, chain: Chain, node: Node) -> None:
    if kind not in chain.addresses:
        pytest.skip("the family has no such movements")
    segment = whole(chain, kind)
    expected = chain.keys(kind)
    assert any(expected.values())
    rows = collected(node, segment)
    assert keys_of(node, rows) == expected
    hashes = {number: chain.block(number).hash for number in range(chain.opening, chain.head() + 1)}
    for name, frame in rows.items():
        table = next(table for table in family_of(chain.network).tables if table.name == name)
        assert kind in table.kinds or not table.kinds
        assert [hashes[number] for number in frame["block_number"]] == frame["block_hash"].to_list()
        for row in frame.select(table.addressed(kind)).iter_rows():
            assert chain.addresses[kind] in row
    # Other ways of reading: final blocks, two halves of the range, and another provider for the second reading.
    middle = (segment.covered.first + segment.covered.last) // 2
    halves = [BlockRange(segment.covered.first, middle), BlockRange(middle + 1, segment.covered.last)]
    with closing(node.other()) as second:
        if kind != "native":
            assert keys_of(node, collected(second, segment, chain.head())) == expected
    parts = [keys_of(node, collected(node, segment._replace(covered=half), middle)) for half in halves]
    assert {name: parts[0][name] | parts[1][name] for name in expected} == expected


@pytest.mark.parametrize("kind", KINDS)
def test_proven_rows_are_the_collected_ones(kind: Kind, chain: Chain, node: Node) -> None:
    if kind not in chain.addresses:
        pytest.skip("the family has no such movements")
    segment = whole(chain, kind)
    hashes = {number: chain.block(number).hash for number in range(chain.opening, chain.head() + 1)}
    if PROVABLE not in node.probe() or kind == NATIVE:
        with pytest.raises(NotProvable) as caught:
            node.proven(segment, hashes)
        assert caught.value.reason == "kind"
        return
    rows = dict(node.proven(segment, hashes))
    expected = collected(node, segment)
    assert rows.keys() == expected.keys()
    for name, frame in expected.items():
        assert_frame_equal(rows[name], frame)
    idle = segment._replace(addresses=(chain.idle,))
    assert all(frame.is_empty() for frame in node.proven(idle, hashes).values())
    moved = {number for table in chain.keys(kind).values() for number, *_ in table}
    # A wrong hash for a block refutes the proof.
    number = min(moved)
    false = hashes | {number: "0x" + "ab" * 32}
    with pytest.raises(NotProvable, match=hashes[number]) as caught:
        node.proven(segment, false)
    assert (caught.value.reason, caught.value.from_block, caught.value.to_block) == ("hash", number, number)


@pytest.mark.parametrize("kind", KINDS)
def test_a_segment_without_movements_is_covered_with_its_tables(kind: Kind, chain: Chain, node: Node) -> None:
    if kind not in chain.addresses:
        pytest.skip("the family has no such movements")
    moved = collected(node, whole(chain, kind))
    idle = collected(node, whole(chain, kind)._replace(addresses=(chain.idle,)))
    assert {name: frame.schema for name, frame in idle.items()} == {name: frame.schema for name, frame in moved.items()}
    assert not any(keys_of(node, idle).values())


def test_balances_equal_the_nodes_at_each_kept_block(chain: Chain, node: Node) -> None:
    head = node.head()
    assert node.keeps_state(head.number, head)
    wallet = chain.addresses["native"]
    pairs = [(NATIVE, wallet), (NATIVE, chain.idle), (NATIVE, wallet)]
    if "token" in chain.addresses:
        pairs += [(chain.addresses["token"], wallet), (chain.addresses["token"], chain.idle)]
    for number in range(chain.opening - 3, head.number + 1):
        if node.keeps_state(number, head):
            block_hash = chain.block(number).hash
            read = node.balances(pairs, number, block_hash)
            assert read.schema == BALANCES
            assert read.rows() == [
                (token, holder, number, block_hash, str(chain.balance(token, holder, number)))
                for token, holder in pairs
            ]
    assert node.balances([], head.number, head.hash).schema == BALANCES


def test_supplies_are_the_nodes(chain: Chain, node: Node) -> None:
    if "token" not in chain.addresses:
        pytest.skip("the family has no tokens")
    head, token = node.head(), chain.addresses["token"]
    read = node.supplies([token, chain.idle], head.number, head.hash)
    assert read.schema == SUPPLIES
    assert read["token_address"].to_list() == [token, chain.idle]
    assert read["total_supply_raw"].to_list() == [str(chain.supply(token, head.number)), "0"]
    assert set(read["block_hash"]) == {head.hash}


def test_balance_changes_leave_no_wide_step(chain: Chain, node: Node) -> None:
    if PAST_BALANCES not in node.probe():
        pytest.skip("the node has no past balances")
    low, high, wallet = chain.opening, chain.head(), chain.addresses["native"]
    series = {number: chain.balance(NATIVE, wallet, number) for number in range(low, high + 1)}
    found = node.balance_changes([BalanceRange(wallet, low, high, series[low], series[high])], 1_000)
    assert found.schema == BALANCE_CHANGES
    readings = {low: series[low], high: series[high]} | {
        number: int(quantity) for _, number, quantity in found.iter_rows()
    }
    assert {number: series[number] for number in readings} == readings
    numbers = sorted(readings)
    wide = [(one, two) for one, two in itertools.pairwise(numbers) if series[one] != series[two] and two - one > 1]
    assert wide == []
    assert len(readings) > 2


def test_tokens_have_creation_block_and_metadata(chain: Chain, node: Node) -> None:
    if "token" not in chain.addresses:
        pytest.skip("the family has no tokens")
    head, token = node.head(), chain.addresses["token"]
    assert node.creation(token, head.number) == chain.creation(token)
    assert node.creation(chain.idle, head.number) is None
    told = node.metadata([token, chain.idle], head.number)
    assert told.schema == METADATA
    assert told["token_address"].to_list() == [token, chain.idle]
    assert told["contract_status"].to_list() == ["Fungible", "NoContract"]
    assert node.metadata([], head.number).schema == METADATA


def test_likely_holders_of_a_token_without_a_movement(chain: Chain, node: Node) -> None:
    if "token" not in chain.addresses:
        pytest.skip("the family has no tokens")
    head, token = node.head(), chain.addresses["token"]
    expected = chain.likely_holders(token)
    told = node.likely_holders(token, chain.creation(token), head.number)
    assert sorted(told) == sorted(expected)
    # The creator is only found with the right creation block.
    for created in (None, head.number):
        told = node.likely_holders(token, created, head.number)
        assert token in told
        assert set(told) < expected


def test_transactions_have_their_senders(chain: Chain, node: Node) -> None:
    if "token" not in chain.addresses:
        pytest.skip("the family has no tokens")
    expected = {
        one: sender
        for number in range(chain.opening, chain.head() + 1)
        for one, sender in chain.senders(number).items()
    }
    assert len(set(expected.values())) > 1
    unknown = "0x" + "ab" * 32
    assert node.senders([*expected, unknown]) == [*expected.values(), None]
    assert node.senders([]) == []


def test_without_stored_rows_nothing_is_derived_and_no_wallet_waits(node: Node) -> None:
    assert (list(node.derived()), list(node.unready()), list(node.outgrown())) == ([], [], [])


def test_the_cost_of_full_collection_names_the_number_of_blocks(node: Node) -> None:
    assert "1234" in node.cost_of_full(1234)


def test_balances_of_an_orphaned_block_raise_an_error(moving: Chain) -> None:
    with closing(open_node(moving.network)) as node:
        node.probe()
        head = node.head()
        moving.replace_tail(3)
        assert node.head().number == head.number + 1
        with pytest.raises(ChainReorganised) as caught:
            node.balances([(NATIVE, moving.idle)], head.number, head.hash)
        assert caught.value.block_number == head.number
        for kind in moving.addresses:
            assert keys_of(node, collected(node, whole(moving, kind))) == moving.keys(kind)


_ASKED: dict[str, Callable[[Node, Chain], object]] = {
    "probe": lambda node, _: node.probe(),
    "head": lambda node, _: node.head(),
    "headers": lambda node, _: node.headers([1]),
    "collect": lambda node, chain: list(
        node.collect(Segment(some_kind(chain), BlockRange(1, 2), (chain.addresses[some_kind(chain)],)), 2)
    ),
}


@pytest.mark.ci
@pytest.mark.parametrize("question", _ASKED)
def test_a_node_that_is_down_is_an_error_without_its_url(question: str, chain: Chain) -> None:
    dead = replace(chain.network, rpc_urls=(f"http://user:{SECRET}@127.0.0.1:1/{SECRET}",))
    with closing(family_of(dead).open(dead, timeout=(0.5, 0.5), max_attempts=1)) as node:
        with pytest.raises(NodeUnreachable) as caught:
            _ASKED[question](node, chain)
        assert isinstance(caught.value, ExtractError)
        assert caught.value.network == dead.name
        assert caught.value.call
        assert SECRET not in str(caught.value) + repr(caught.value) + node.provider
