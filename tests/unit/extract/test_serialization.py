"""Blocks from their bytes: published blocks, forms of transactions, and bytes that are no block."""

import hashlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.networks.utxo import ProofOfWork
from pipelines.extract.utxo.scans import base_units
from pipelines.extract.utxo.serialization import (
    InvalidBlock,
    double_hash,
    merkle_root,
    read_block,
    read_header,
    read_transaction,
    shown,
)

SHA256D = ProofOfWork.SHA256D
# Bitcoin's genesis block. Source: https://en.bitcoin.it/wiki/Genesis_block
GENESIS = bytes.fromhex(
    "01000000" + 64 * "0" + "3ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a29ab5f49ffff001d1dac2b7c"
    "01"
    "01000000010000000000000000000000000000000000000000000000000000000000000000ffffffff4d04ffff001d0104455468652054696d"
    "65732030332f4a616e2f32303039204368616e63656c6c6f72206f6e206272696e6b206f66207365636f6e64206261696c6f757420666f7220"
    "62616e6b73ffffffff0100f2052a01000000434104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f"
    "4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac00000000"
)
GENESIS_HASH = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"
GENESIS_TRANSACTION = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b"
# The example of BIP 143 for a witness of a key's hash, signed. Source: https://github.com/bitcoin/bips, bip-0143
SEGWIT = bytes.fromhex(
    "01000000000102fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f00000000494830450221008b9d1dc26ba6a9"
    "cb62127b02742fa9d754cd3bebf337f7a55d114c8e5cdd30be022040529b194ba3f9281a99f2b1c0a19c0489bc22ede944ccf4ecbab4cc618e"
    "f3ed01eeffffffef51e1b804cc89d182d279655c3aa89e815b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202cb20600000000"
    "1976a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac9093510d000000001976a9143bde42dbee7e4dbe6a21b2d50ce2f0167faa81"
    "5988ac000247304402203609e17b84f6a7d30c80bfa610b5b4542f32a8a0d5447a12fb1366d7f01cc44a0220573a954c4518331561406f9030"
    "0e8f3358f51928d43c212a8caed02de67eebee0121025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357110000"
    "00"
)
# Litecoin's block 3115499 ends with a payment out of MWEB. Source: https://litecoinspace.org
EXTENDED = bytes.fromhex(
    "0200000000080334deca06b4404281649ce20edcb757475b0dbfc18b55ca9d68e8879c95564ee60000000000ffffffff59f82ce926956c7ef6"
    "52e7e5aa93c766e3b3f95ea91b32f940bd502558826bde0000000000ffffffff6f3cc906516f39c5e2a9e82cae684292c124b448db737149dc"
    "e0679ba38e74a10000000000ffffffff0208614a2eff200000225820a0de06cda14d558d9f237cb8870276935256c9f81d25d808d6b932258c"
    "ffac9f0027b9290000000017a91429dc4ac51a4fdc6433518b3283123a665681e86b870000000000"
)


def test_a_published_block_has_its_hashes() -> None:
    block = read_block(GENESIS, SHA256D)
    assert block.header == read_header(GENESIS[:80], SHA256D)
    assert (block.header.hash, block.header.parent_hash, block.header.time) == (GENESIS_HASH, 64 * "0", 1231006505)
    (transaction,) = block.transactions
    assert shown(transaction.id) == GENESIS_TRANSACTION
    assert transaction.is_coinbase
    assert [amount for amount, _ in transaction.outputs] == [50 * 10**8]


def test_a_transactions_id_leaves_out_its_witness() -> None:
    transaction = read_transaction(SEGWIT)
    assert (len(transaction.inputs), [amount for amount, _ in transaction.outputs]) == (2, [112340000, 223450000])
    body = SEGWIT[:4] + SEGWIT[6 : SEGWIT.index(bytes.fromhex("88ac000247")) + 2] + SEGWIT[-4:]
    assert transaction.id == hashlib.sha256(hashlib.sha256(body).digest()).digest()
    assert not transaction.is_coinbase


def test_an_extension_is_left_out_of_the_id_and_refused_elsewhere() -> None:
    transaction = read_transaction(EXTENDED, has_extension=True)
    assert len(transaction.inputs) == 3
    assert transaction.outputs[1][0] == 700_000_000
    body = EXTENDED[:4] + EXTENDED[6:-5] + EXTENDED[-4:]
    assert transaction.id == double_hash(body)
    with pytest.raises(InvalidBlock, match="unknown flags 8"):
        read_transaction(EXTENDED)


@given(st.integers(0, len(GENESIS) - 1), st.integers(1, 255))
def test_no_changed_byte_gives_the_same_block(position: int, change: int) -> None:
    spoiled = bytearray(GENESIS)
    spoiled[position] ^= change
    try:
        block = read_block(bytes(spoiled), SHA256D)
    except InvalidBlock:
        return
    assert block.header.hash != GENESIS_HASH


@given(st.integers(0, len(GENESIS) - 1))
def test_a_block_that_ends_early_is_refused(length: int) -> None:
    with pytest.raises(InvalidBlock):
        read_block(GENESIS[:length], SHA256D)
    with pytest.raises(InvalidBlock):
        read_block(GENESIS + b"\0", SHA256D)


@pytest.mark.parametrize("spoiled", [GENESIS[:80] + b"\xff" + 8 * b"\xff", GENESIS[:85] + b"\xfe\xff\xff\xff\xff"])
def test_a_count_beyond_the_bytes_is_refused_at_once(spoiled: bytes) -> None:
    with pytest.raises(InvalidBlock, match="ends early"):
        read_block(spoiled, SHA256D)


def plain_root(ids: Sequence[bytes]) -> bytes:
    """The definition, by recursion: the last one is paired with itself."""
    if len(ids) == 1:
        return ids[0]
    pairs = [(ids[at], ids[min(at + 1, len(ids) - 1)]) for at in range(0, len(ids), 2)]
    return plain_root([hashlib.sha256(hashlib.sha256(one + other).digest()).digest() for one, other in pairs])


@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=20, unique=True))
def test_a_merkle_root_is_that_of_the_definition(ids: list[bytes]) -> None:
    assert merkle_root(ids) == plain_root(ids)


def test_a_list_with_the_root_of_a_shorter_one_is_refused() -> None:
    ids = [bytes([number]) * 32 for number in range(3)]
    assert plain_root([*ids, ids[-1]]) == plain_root(ids)
    with pytest.raises(InvalidBlock, match="twice"):
        merkle_root([*ids, ids[-1]])
    with pytest.raises(InvalidBlock, match="no transactions"):
        merkle_root([])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"0.00000001", 1),
        (b"84000000.00000000", 84 * 10**14),
        (b"1", 10**8),
        (b"1.5", 150_000_000),
        (b"5e-06", 500),
        (b"1E2", 10**10),
        (b"0.000000001", None),
        (b"-1.00000000", None),
        (b'"1.00000000"', None),
        (b"1e99", None),
        (b"null", None),
        (b"99999999999999999999.00000000", None),
    ],
)
def test_an_amount_is_a_whole_number_of_base_units_or_none(text: bytes, expected: int | None) -> None:
    assert base_units(text, 8) == expected
