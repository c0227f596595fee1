"""Recomputed hashes and roots: they match mainnet's, differ for tampered copies, and the RLP decodes again."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import rlp
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.extract.evm.commitments import (
    BlockHeader,
    Receipt,
    Receipts,
    encode_header,
    encode_receipt,
    header_hash,
    receipts_root,
)
from tests.chain.mainnet import FOLDER

# As shown by any explorer of mainnet.
PUBLISHED = {
    1_000_000: "0x8e38b4dbf6b11fcc3b9dee84fb7986e29ca0a02cecd8977c161ff7333329681e",
    20_000_000: "0xd24fd73f794058a3807db926d8898c6481e902b7edb91ce0d479d6760f276183",
}
# These headers are recorded with a mixHash of zeros.
WITHOUT_MIX_HASH = {1_755_634, 1_755_635, 17_173_050}
# The root of a trie without items, as the yellow paper gives it.
EMPTY_ROOT = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"

Json = dict[str, Any]


def real_blocks() -> Iterator[tuple[Json, list[Json]]]:
    """Return each recorded block with its transaction hashes, and its receipts in order."""
    receipts: dict[str, list[Json]] = {}
    for line in (FOLDER / "receipts.jsonl").read_text().splitlines():
        receipt = json.loads(line)
        receipts.setdefault(receipt["blockNumber"], []).append(receipt)
    for line in (FOLDER / "blocks.jsonl").read_text().splitlines():
        block = json.loads(line)
        block["transactions"] = [item["hash"] for item in block["transactions"]]
        yield block, sorted(receipts.get(block["number"], []), key=lambda one: int(one["transactionIndex"], 16))


def header(block: Json) -> BlockHeader:
    return msgspec.convert(block, BlockHeader)


def root(receipts: list[Json]) -> str:
    return receipts_root(msgspec.convert(receipts, Receipts))


def test_real_headers_recompute_to_their_published_hashes() -> None:
    found = {int(block["number"], 16): (header_hash(header(block)), block["hash"]) for block, _ in real_blocks()}
    assert {number for number, (computed, named) in found.items() if computed != named} == WITHOUT_MIX_HASH
    assert {number: found[number][0] for number in PUBLISHED} == PUBLISHED


def test_real_receipts_recompute_to_their_roots() -> None:
    kinds = set()
    for block, receipts in real_blocks():
        assert root(receipts) == block["receiptsRoot"]
        kinds |= {(receipt.get("type"), "root" in receipt) for receipt in receipts}
    # State roots and statuses, and each type of transaction up to blobs.
    assert kinds >= {("0x0", True), ("0x0", False), ("0x1", False), ("0x2", False), ("0x3", False)}


def remove_log(receipts: list[Json]) -> None:
    del next(one for one in receipts if one["logs"])["logs"][0]


def add_log(receipts: list[Json]) -> None:
    logs = next(one for one in receipts if one["logs"])["logs"]
    logs.append(logs[0])


def change_topic(receipts: list[Json]) -> None:
    topics = next(one for one in receipts if one["logs"])["logs"][0]["topics"]
    topics[-1] = topics[-1][:-1] + ("0" if topics[-1][-1] != "0" else "1")


def change_amount(receipts: list[Json]) -> None:
    log = next(log for one in receipts for log in one["logs"] if len(log["data"]) == 66)
    log["data"] = f"0x{int(log['data'], 16) + 1:064x}"


def change_token(receipts: list[Json]) -> None:
    next(one for one in receipts if one["logs"])["logs"][0]["address"] = "0x" + "ab" * 20


def flip_status(receipts: list[Json]) -> None:
    receipts[0]["status"] = "0x0" if receipts[0]["status"] == "0x1" else "0x1"


def swap_receipts(receipts: list[Json]) -> None:
    receipts[:2] = receipts[1::-1]


def remove_receipt(receipts: list[Json]) -> None:
    receipts.pop()


@pytest.mark.parametrize(
    "tamper",
    [remove_log, add_log, change_topic, change_amount, change_token, flip_status, swap_receipts, remove_receipt],
)
def test_tampered_receipts_have_another_root(tamper: Callable[[list[Json]], None]) -> None:
    block, receipts = next(pair for pair in real_blocks() if pair[0]["number"] == hex(20_000_000))
    tampered = copy.deepcopy(receipts)
    tamper(tampered)
    assert tampered != receipts
    assert root(tampered) != block["receiptsRoot"]


def test_each_field_of_a_header_changes_the_hash() -> None:
    block = next(block for block, _ in real_blocks() if block["number"] == hex(20_000_000))
    # JSON fields that the hash does not include.
    uncommitted = {"hash", "size", "totalDifficulty", "transactions", "uncles", "withdrawals"}
    assert block.keys() > uncommitted
    for name in block.keys() - uncommitted:
        digits = block[name]
        changed = block | {name: digits[:-1] + ("0" if digits[-1] != "0" else "1")}
        assert header_hash(header(changed)) != block["hash"], name
    committed = {name: block[name] for name in block.keys() - {"size", "totalDifficulty"}}
    assert header_hash(header(committed)) == block["hash"]


def test_no_receipts_have_the_root_of_an_empty_trie() -> None:
    assert receipts_root([]) == EMPTY_ROOT


ADDRESSES = st.binary(min_size=20, max_size=20)
WORDS = st.binary(min_size=32, max_size=32)
LOGS = st.tuples(ADDRESSES, st.lists(WORDS, max_size=4), st.binary(max_size=80))
NUMBERS = st.integers(0, 2**64 - 1)


def as_receipt(status: int, gas: int, kind: int | None, logs: list[tuple[bytes, list[bytes], bytes]]) -> Receipt:
    raw = {
        "transactionHash": "0x" + "00" * 32,
        "transactionIndex": "0x0",
        "cumulativeGasUsed": hex(gas),
        "logsBloom": "0x" + "1f" * 256,
        "status": hex(status),
        "type": None if kind is None else hex(kind),
        "logs": [
            {
                "address": "0x" + address.hex(),
                "topics": ["0x" + topic.hex() for topic in topics],
                "data": "0x" + data.hex().upper(),
                "logIndex": hex(index),
            }
            for index, (address, topics, data) in enumerate(logs)
        ],
    }
    return msgspec.convert(raw, Receipt)


def reads_back(status: int, gas: int, kind: int | None, logs: list[tuple[bytes, list[bytes], bytes]]) -> None:
    """Decode the encoded receipt with RLP's own decoder and compare."""
    encoded = encode_receipt(as_receipt(status, gas, kind, logs))
    if kind:
        assert encoded[0] == kind
        encoded = encoded[1:]
    read_status, read_gas, bloom, read_logs = rlp.decode(encoded)
    assert (int.from_bytes(read_status), int.from_bytes(read_gas), bloom) == (status, gas, b"\x1f" * 256)
    assert [(address, list(topics), data) for address, topics, data in read_logs] == logs


ARGUMENTS = (st.integers(0, 1), NUMBERS, st.none() | st.integers(0, 0x7F), st.lists(LOGS, max_size=4))


@settings(max_examples=30)
@given(*ARGUMENTS)
def test_encoded_receipt_decodes_to_the_same_fields(
    status: int, gas: int, kind: int | None, logs: list[tuple[bytes, list[bytes], bytes]]
) -> None:
    reads_back(status, gas, kind, logs)


@pytest.mark.release
@settings(max_examples=1_000)
@given(*ARGUMENTS)
def test_many_encoded_receipts_decode_to_the_same_fields(
    status: int, gas: int, kind: int | None, logs: list[tuple[bytes, list[bytes], bytes]]
) -> None:
    reads_back(status, gas, kind, logs)


def test_deposits_contain_their_nonce_since_canyon() -> None:
    deposit = as_receipt(1, 50_000, 0x7E, [])
    deposit.deposit_nonce = "0x10"
    assert len(rlp.decode(encode_receipt(deposit)[1:])) == 4
    deposit.deposit_receipt_version = "0x1"
    assert rlp.decode(encode_receipt(deposit)[1:])[4:] == [b"\x10", b"\x01"]


def test_receipts_without_an_outcome_or_of_an_unknown_type_are_refused() -> None:
    good, bad = as_receipt(1, 1, 2, []), as_receipt(1, 1, 2, [])
    bad.status = None
    with pytest.raises(ValueError, match="receipt 1 has neither a status nor a state root"):
        receipts_root([good, bad])
    bad.status, bad.type = "0x1", "0x80"
    with pytest.raises(ValueError, match="receipt 1 has the unknown type 0x80"):
        receipts_root([good, bad])


def test_missing_header_field_before_a_later_forks_field_keeps_its_place() -> None:
    hashes = ("hash", "parentHash", "sha3Uncles", "stateRoot", "transactionsRoot", "receiptsRoot", "mixHash")
    words = dict.fromkeys(hashes, "0x" + "11" * 32)
    numbers = dict.fromkeys(("difficulty", "number", "gasLimit", "gasUsed", "timestamp"), "0x0100")
    old = words | numbers | {"miner": "0x" + "22" * 20, "logsBloom": "0x" + "00" * 256, "extraData": "0x"}
    old |= {"nonce": "0x" + "00" * 8, "transactions": []}
    assert len(rlp.decode(encode_header(header(old)))) == 15
    assert rlp.decode(encode_header(header(old)))[7:12] == [b"\x01\x00"] * 5
    later = header(old | {"baseFeePerGas": None, "withdrawalsRoot": "0x" + "33" * 32, "requestsHash": None})
    assert rlp.decode(encode_header(later))[15:] == [b"", b"\x33" * 32]
