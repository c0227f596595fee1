"""Proof of work of headers: published ones, invented ones, and targets that are easier than those before them."""

from collections.abc import Set
from typing import Any, NoReturn

import polars as pl
import pytest

from control.networks.definitions import Network, load_networks
from control.networks.utxo import ProofOfWork
from control.ranges import BlockRange
from control.settings import load_settings
from pipelines.extract.errors import MalformedAnswer
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.extract.utxo.collecting import OutputCollector
from pipelines.extract.utxo.headers import Numbered, check_follows, read_headers
from pipelines.extract.utxo.serialization import InvalidBlock, RawHeader, read_header, target_of
from pipelines.rows import Segment
from tests.chain.mined_chain import EASIER_STILL, FOUR_TIMES_EASIER, HARD, TRIVIAL, MinedChain
from tests.unit.extract.conftest import MakeClient

# Published headers, which their hashes identify. Bitcoin's target became easier with block 560448.
PUBLISHED = {
    "bitcoin 0": (
        ProofOfWork.SHA256D,
        "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc81bc388"
        "8a51323a9fb8aa4b1e5e4a29ab5f49ffff001d1dac2b7c",
        "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f",
    ),
    "bitcoin 1": (
        ProofOfWork.SHA256D,
        "010000006fe28c0ab6f1b372c1a6a246ae63f74f931e8365e15a089c68d6190000000000982051fd1e4ba744bbbe680e1fee14677ba1a3c354"
        "0bf7b1cdb606e857233e0e61bc6649ffff001d01e36299",
        "00000000839a8e6886ab5951d76f411475428afc90947ee320161bbf18eb6048",
    ),
    "bitcoin 560447": (
        ProofOfWork.SHA256D,
        "00000020d8e8e54ca5e33522b94fbba5de736efc55ff75e832cf2300000000000000000007b395f80858ee022c9c3c2f0f5cee4bd807039f07"
        "29b0559ae4326c3ba77d6b209f4e5c33d62f1746ee356d",
        "00000000000000000014dbca1d9ea7256a3993253c033a50d8b3064a2cbd056b",
    ),
    "bitcoin 560448": (
        ProofOfWork.SHA256D,
        "000000206b05bd2c4a06b3d8503a033c2593396a25a79e1dcadb140000000000000000001b08df3d42cd9a38d8b66adf9dc5eb464f503633bd"
        "861085ffff723634531596a1a24e5c35683017bf67b72a",
        "00000000000000000020adeb95048ff41daac22d2dd97414fd5c47cdc391923a",
    ),
    "litecoin 0": (
        ProofOfWork.SCRYPT,
        "010000000000000000000000000000000000000000000000000000000000000000000000d9ced4ed1130f7b7faad9be25323ffafa33232a17c"
        "3edf6cfd97bee6bafbdd97b9aa8e4ef0ff0f1ecd513f7c",
        "12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2",
    ),
    "litecoin 1": (
        ProofOfWork.SCRYPT,
        "01000000e2bf047e7e5a191aa4ef34d314979dc9986e0f19251edaba5940fd1fe365a712f6509b1757baa71bc746e17cb4d0ed22e8935f71e2"
        "d0724336789021a40639fabfed8f4ef0ff0f1e7f270400",
        "80ca095ed10b02e53d769eb6eaf92cd04e9e0759e5be4a8477b42911ba49c78f",
    ),
    "litecoin 2000000": (
        ProofOfWork.SCRYPT,
        "00000020c4fbec9d43f174745899ff294bd105d74a072440f1159c59bb0ddb57fce3ff173d2eac89cebaa82bbaf56dd90b3ff78b1af22ba94e"
        "54a43cab456350d37edfd58b902760a0a4011a09ad630b",
        "3a4d8e7c77a85554fc8bd30d4e42d56eb71010e769ea9737f16241ba79bed9c5",
    ),
}
ADDRESSES = {
    "bitcoin": "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
    "bitcoin-testnet": "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_header_has_work_by_its_own_hash_alone(name: str) -> None:
    proof, text, hash_ = PUBLISHED[name]
    raw = bytes.fromhex(text)
    assert read_header(raw, proof).hash == hash_
    (other,) = {ProofOfWork.SHA256D, ProofOfWork.SCRYPT} - {proof}
    for wrong, changed in ((other, raw), (proof, raw[:-4] + bytes(4))):
        with pytest.raises(InvalidBlock, match="its hash is above its target"):
            read_header(changed, wrong)
    assert read_header(raw[:-4] + bytes(4), ProofOfWork.NONE).target == 0


@pytest.mark.parametrize(
    ("bits", "target"),
    [
        (0x1D00FFFF, 0xFFFF << 208),
        (0x207FFFFF, 0x7FFFFF << 232),
        (0x03123456, 0x123456),
        (0x02123456, 0x1234),
        (0x01123456, 0x12),
        (0x2100FFFF, 0xFFFF << 240),
        (0x220000FF, 0xFF << 248),
        (0x00123456, None),
        (0x01003456, None),
        (0x1D000000, None),
        (0x1D80FFFF, None),
        (0x21010000, None),
        (0x22000100, None),
        (0x23000001, None),
        (0xFF7FFFFF, None),
    ],
)
def test_a_target_that_is_zero_negative_or_too_large_is_refused(bits: int, target: int | None) -> None:
    if target is None:
        with pytest.raises(InvalidBlock, match=f"the bits {bits:08x}, which are no target"):
            target_of(bits)
    else:
        assert target_of(bits) == target


def defined(name: str) -> Network:
    """Return a shipped definition."""
    return load_networks(load_settings({}).networks_file, {})[name]


@pytest.mark.parametrize(
    ("blocks", "times", "is_refused"),
    [(1, 4, False), (1, 5, True), (2_016, 4, False), (2_016, 5, True), (2_017, 16, False), (2_017, 17, True)],
)
def test_a_target_eases_at_most_fourfold_in_each_2016_blocks_of_a_main_network(
    blocks: int, times: int, is_refused: bool
) -> None:
    earlier = Numbered(7, RawHeader("a", "", b"", 0, 1_000))
    later = Numbered(7 + blocks, RawHeader("b", "a", b"", 0, 1_000 * times))
    if is_refused:
        with pytest.raises(MalformedAnswer, match=f"block {7 + blocks} needed too little work"):
            check_follows(defined("litecoin"), [earlier], later)
    else:
        check_follows(defined("litecoin"), [earlier], later)
    check_follows(defined("bitcoin-testnet"), [earlier], later)


@pytest.mark.parametrize(
    ("name", "bits", "is_refused"),
    [
        ("bitcoin", FOUR_TIMES_EASIER, False),
        ("bitcoin", EASIER_STILL, True),
        ("bitcoin-testnet", EASIER_STILL, False),
    ],
)
def test_an_easier_target_is_refused_on_main_networks_without_another_request(
    name: str, bits: int, is_refused: bool, make_client: MakeClient
) -> None:
    with MinedChain() as chain:
        chain.mine(HARD, 14)
        chain.mine(bits)
        client = make_client(chain)
        if is_refused:
            with pytest.raises(MalformedAnswer, match="block 14 needed too little work") as caught:
                read_headers(client, defined(name), [14])
            assert (caught.value.from_block, caught.value.to_block) == (14, 14)
        else:
            assert read_headers(client, defined(name), [14])["block_hash"].to_list() == [chain.hash_of(14)]
        assert chain.requests == 2
        assert sorted(params[0] for method, params in chain.calls if method == "getblockhash") == list(range(4, 15))


class Stored:
    """Stored headers, by the hash of each number; all outputs of all addresses are known."""

    def __init__(self, hashes: dict[int, str]) -> None:
        self.hashes = hashes

    def find(self, query: str, wanted: pl.DataFrame | None = None, **parameters: Any) -> pl.DataFrame:
        """Answer the queries of a segment without inputs."""
        if query == "known_since":
            assert wanted is not None
            return wanted.with_columns(known_since=0)
        assert query == "newest_before"
        found = [row for row in sorted(self.hashes.items(), reverse=True) if row[0] < parameters["before"]]
        return pl.DataFrame(found[:1], schema={"block_number": pl.Int64, "block_hash": pl.String}, orient="row")


def _no_survey(wallets: Set[str]) -> NoReturn:
    raise AssertionError(f"the rows of {wallets} are known")


def collect(client: RpcClient, network: Network, blocks: range, stored: dict[int, str]) -> list[BlockRange]:
    """Return the blocks of each part of a segment."""
    segment = Segment("native", BlockRange(blocks[0], blocks[-1]), (ADDRESSES[network.name],))
    collector = OutputCollector(client, network, segment, None, Stored(stored), _no_survey)
    return [part.covered for part in collector.parts()]


def test_invented_blocks_of_a_main_network_are_refused_by_the_stored_header_before_them(
    make_client: MakeClient,
) -> None:
    with MinedChain() as chain:
        chain.mine(HARD, 3)
        stored = {2: chain.hash_of(2)}
        chain.mine(TRIVIAL, 20)
        client = make_client(chain)
        for blocks in (range(3, 23), range(12, 23)):
            with pytest.raises(MalformedAnswer, match=f"block {blocks[0]} needed too little work"):
                collect(client, defined("bitcoin"), blocks, stored)
        # A test network has no comparison, and so no request for it.
        assert collect(client, defined("bitcoin-testnet"), range(3, 23), stored) == [(3, 22)]
        asked = [params[0] for method, params in chain.calls if method == "getblockheader"]
        assert asked == [chain.hash_of(2)] * 2


def test_targets_do_not_become_easier_block_by_block(make_client: MakeClient) -> None:
    with MinedChain() as chain:
        chain.mine(HARD, 3)
        stored = {2: chain.hash_of(2)}
        chain.mine(FOUR_TIMES_EASIER)
        # Four times easier than the block before.
        chain.mine(0x200FFFF0)
        client, network = make_client(chain), defined("bitcoin")
        assert collect(client, network, range(3, 4), stored) == [(3, 3)]
        with pytest.raises(MalformedAnswer, match="its target is too easy after that of block 2"):
            collect(client, network, range(3, 5), stored)
        with pytest.raises(MalformedAnswer, match="its target is too easy after that of block 0"):
            read_headers(client, network, [4])


def test_a_segment_of_a_main_network_costs_one_request_more(make_client: MakeClient) -> None:
    with MinedChain() as chain:
        chain.mine(HARD, 11)
        assert collect(make_client(chain), defined("bitcoin"), range(3, 11), {2: chain.hash_of(2)}) == [(3, 10)]
        assert [method for method, _ in chain.calls].count("getblockheader") == 1
