"""Decoding of Transfer logs: exact amounts, and only ERC-20 transfers."""

import json
import string
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.extract.errors import ChainReorganised, MalformedAnswer
from pipelines.extract.evm.logs import Log, decode_transfers
from tests.chain.mainnet import FOLDER, listed_transfers
from tests.chain.scripted_node import TRANSFER_TOPIC, block_hash, transfer_log, word

# Literal, so that our own arithmetic is not on both sides.
GOLDEN = {
    "0" * 64: "0",
    "0" * 63 + "1": "1",
    "0" * 48 + "8" + "0" * 15: "9223372036854775808",
    "0" * 47 + "1" + "0" * 16: "18446744073709551616",
    "0" * 32 + "8" + "0" * 31: "170141183460469231731687303715884105728",
    "0" * 31 + "1" + "0" * 32: "340282366920938463463374607431768211456",
    "8" + "0" * 63: "57896044618658097711785492504343953926634992332820282019728792003956564819968",
    "f" * 64: "115792089237316195423570985008687907853269984665640564039457584007913129639935",
}


def logs(*raw: dict[str, Any]) -> list[Log]:
    return msgspec.convert(list(raw), list[Log])


def decode(*raw: dict[str, Any]) -> pl.DataFrame:
    return decode_transfers(logs(*raw), "testnet", 0, 1_000)


def test_golden_amounts_are_exact() -> None:
    rows = decode(*(transfer_log(1, index, 0, data="0x" + data) for index, data in enumerate(GOLDEN)))
    assert rows["amount_raw"].to_list() == list(GOLDEN.values())


def test_columns_and_types() -> None:
    rows = decode(transfer_log(5, 3, 7, sender="0x" + "1b" * 20, recipient="0x" + "0" * 40))
    assert rows.rows(named=True) == [
        {
            "block_number": 5,
            "block_hash": block_hash(5),
            "transaction_index": 3,
            "transaction_hash": f"0x{5:032x}{3:032x}",
            "log_index": 3,
            "token_address": "0x" + "aa" * 20,
            "from_address": "0x" + "1b" * 20,
            "to_address": "0x" + "0" * 40,
            "amount_raw": "7",
        }
    ]
    assert rows.dtypes == [pl.Int64, pl.String, pl.Int32, pl.String, pl.Int32, *[pl.String] * 4]
    assert decode().schema == rows.schema


@given(st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 2**256 - 1)), max_size=40), st.randoms())
def test_any_amounts_in_any_order_come_back_in_chain_order(entries: list[tuple[int, int]], chance: Any) -> None:
    raw = [transfer_log(block, index, amount) for index, (block, amount) in enumerate(entries)]
    expected = sorted((block, index, str(amount)) for index, (block, amount) in enumerate(entries))
    chance.shuffle(raw)
    rows = decode(*raw)
    assert rows.select("block_number", "log_index", "amount_raw").rows() == expected


# Almost hex: other texts that Python's int() accepts, digits of other scripts, and any lengths.
ODD_TEXT = st.text("0123456789abcdefABCDEFxX_+- \n\0g\u0663", max_size=70) | st.integers(-5, 2**70).map(hex)
ODD_JSON = ODD_TEXT | st.none() | st.booleans() | st.integers() | st.lists(ODD_TEXT, max_size=5)
TOPICS = st.lists(st.sampled_from([TRANSFER_TOPIC, "0x" + word(1), "0x" + "1f" * 32]) | ODD_TEXT, max_size=5)
WORD_TEXT = st.integers(0, 2**256 - 1).map(lambda number: "0x" + word(number))
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "address": ODD_JSON,
        "topics": TOPICS | ODD_JSON,
        "data": WORD_TEXT | ODD_JSON,
        "blockNumber": st.integers(0, 1_001).map(hex) | ODD_JSON,
        "blockHash": ODD_JSON,
        "transactionHash": WORD_TEXT | ODD_JSON,
        "transactionIndex": st.integers(0, 2**31).map(hex) | ODD_JSON,
        "logIndex": st.integers(0, 2**31).map(hex) | ODD_JSON,
        "removed": st.booleans() | ODD_JSON,
        "unknown": ODD_JSON,
    },
)
ODD_LOGS = st.lists(st.tuples(st.integers(0, 1_000), CHANGES), max_size=4)


def number(text: str) -> int:
    """Return the number in hex text of ASCII digits only."""
    assert text[:2].lower() == "0x"
    assert set(text[2:]) <= set(string.hexdigits)
    return sum(string.hexdigits.index(digit.lower()) * 16**place for place, digit in enumerate(reversed(text[2:])))


def decodes_exactly_or_is_refused(entries: list[tuple[int, dict[str, Any]]]) -> None:
    """Compare decoded rows with the JSON, read digit by digit."""
    raw = [transfer_log(block, index, 5, **changes) for index, (block, changes) in enumerate(entries)]
    try:
        rows = decode_transfers(msgspec.json.decode(json.dumps(raw), type=list[Log]), "testnet", 0, 1_000)
    except (msgspec.DecodeError, MalformedAnswer, ChainReorganised):
        return
    expected = sorted(
        (
            number(log["blockNumber"]),
            number(log["logIndex"]),
            number(log["transactionIndex"]),
            number(log["blockHash"]),
            number(log["transactionHash"]),
            number(log["address"]),
            *(number(topic) for topic in log["topics"][1:]),
            str(number(log["data"])),
        )
        for log in raw
        if len(log["topics"]) == 3 and len(log["data"]) == 66 and max(map(number, log["topics"][1:])) < 2**160
    )
    found = rows.select(
        "block_number",
        "log_index",
        "transaction_index",
        *("block_hash", "transaction_hash", "token_address", "from_address", "to_address"),
        "amount_raw",
    )
    assert [(*row[:3], *map(number, row[3:8]), row[8]) for row in found.rows()] == expected


@settings(max_examples=60)
@given(ODD_LOGS)
def test_any_log_is_decoded_exactly_or_refused(entries: list[tuple[int, dict[str, Any]]]) -> None:
    decodes_exactly_or_is_refused(entries)


@pytest.mark.release
@settings(max_examples=2_000)
@given(ODD_LOGS)
def test_many_logs_are_decoded_exactly_or_refused(entries: list[tuple[int, dict[str, Any]]]) -> None:
    decodes_exactly_or_is_refused(entries)


def test_a_removed_log_of_no_block_is_malformed() -> None:
    with pytest.raises(MalformedAnswer, match="is not well-formed"):
        decode(transfer_log(1, 1, 1, removed=True, blockNumber="0xnone"))


def test_upper_case_hex_is_lowered() -> None:
    log = transfer_log(1, 1, 0xABC, token="0x" + "AB" * 20, sender="0x" + "CD" * 20)
    log["data"] = log["data"].upper().replace("0X", "0x")
    log["blockHash"] = "0x" + "EF" * 32
    row = decode(log).row(0, named=True)
    assert (row["token_address"], row["from_address"]) == ("0x" + "ab" * 20, "0x" + "cd" * 20)
    assert (row["block_hash"], row["amount_raw"]) == ("0x" + "ef" * 32, "2748")


@pytest.mark.parametrize(
    "changes",
    [
        {"topics": [TRANSFER_TOPIC, "0x" + word(1), "0x" + word(2), "0x" + word(3)], "data": "0x"},
        {"topics": [TRANSFER_TOPIC], "data": "0x" + word(1) * 3},
        {"topics": [TRANSFER_TOPIC, "0x" + word(1)], "data": "0x" + word(1) * 2},
        {"data": "0x"},
        {"data": "0x" + word(1) * 2},
        {"data": "0x01"},
        {"topics": [TRANSFER_TOPIC, "0x" + "1" * 64, "0x" + word(2)]},
        {"topics": [TRANSFER_TOPIC, "0x" + word(1), "0x" + "1" + "0" * 63]},
    ],
    ids=["ERC-721", "no topics", "two topics", "no data", "two words", "one byte", "wide sender", "wide recipient"],
)
def test_other_kinds_of_logs_are_ignored(changes: dict[str, Any]) -> None:
    rows = decode(transfer_log(1, 1, 10), transfer_log(1, 2, 20, **changes), transfer_log(1, 3, 30))
    assert rows["amount_raw"].to_list() == ["10", "30"]


@pytest.mark.parametrize(
    "changes",
    [
        {"data": "0x" + "0" * 63},
        {"data": "0x" + "0" * 63 + "g"},
        {"data": "0x" + "0" * 62 + "_1"},
        {"data": "0x" + "0" * 63 + " "},
        {"data": "-0" + "0" * 64},
        {"data": "0x" + word(1) + "\n"},
        {"data": word(1)},
        {"address": "0x" + "a" * 39},
        {"topics": [TRANSFER_TOPIC, "0x" + word(1)[1:], "0x" + word(2)]},
        {"topics": [TRANSFER_TOPIC[:-1] + "0", "0x" + word(1), "0x" + word(2)]},
        {"topics": []},
        {"topics": [TRANSFER_TOPIC, "0x" + word(1), "0x" + word(2) + "\n"]},
        {"blockHash": "0x12"},
        {"transactionHash": "0x" + "z" * 64},
        {"logIndex": "0x80000000"},
        {"logIndex": "2"},
        {"transactionIndex": "0x"},
        {"blockNumber": "0x"},
        {"blockNumber": "0x-1"},
        {"blockNumber": hex(1_001)},
        {"blockNumber": hex(2**63)},
    ],
)
def test_malformed_logs_are_named(changes: dict[str, Any]) -> None:
    bad = transfer_log(1, 2, 20, **changes)
    with pytest.raises(MalformedAnswer) as caught:
        decode(transfer_log(1, 1, 10), bad, transfer_log(1, 3, 30))
    told = str(caught.value)
    assert (
        f"log {bad['logIndex']} of transaction {bad['transactionHash']} " in told or "a log is not well-formed" in told
    )


@pytest.mark.parametrize("field", ["logIndex", "transactionHash", "blockNumber", "data"])
def test_text_in_a_log_is_not_shown(field: str) -> None:
    with pytest.raises(MalformedAnswer) as caught:
        decode(transfer_log(1, 2, 20, **{field: "call me at example.org"}))
    assert "example" not in str(caught.value)


@pytest.mark.parametrize("topics", [["0x"] * 5, [None], [TRANSFER_TOPIC, None, "0x"], [7], "0x", [[]]])
def test_topics_are_at_most_four_texts(topics: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(transfer_log(1, 2, 20, topics=topics))


def test_duplicate_log_is_refused() -> None:
    with pytest.raises(MalformedAnswer, match="log 1 of transaction 1 of block 4 appears twice"):
        decode(transfer_log(4, 1, 1), transfer_log(5, 1, 1), transfer_log(4, 1, 1))


def test_indexes_that_are_counted_in_each_transaction_are_in_the_order_of_transactions() -> None:
    logs = [
        transfer_log(4, transaction, 10 * transaction + log, logIndex=hex(log))
        for transaction in (2, 1)
        for log in (1, 0)
    ]
    rows = decode(*logs)
    assert rows.select("transaction_index", "log_index").rows() == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert rows["amount_raw"].to_list() == ["10", "11", "20", "21"]


def test_removed_logs_are_a_reorganisation() -> None:
    with pytest.raises(ChainReorganised) as caught:
        decode(transfer_log(4, 1, 1), transfer_log(5, 1, 1, removed=True))
    assert caught.value.block_number == 5


def test_two_hashes_of_one_block_are_a_reorganisation() -> None:
    with pytest.raises(ChainReorganised) as caught:
        decode(transfer_log(4, 1, 1), transfer_log(5, 1, 1), transfer_log(5, 2, 1, blockHash=block_hash(5, fork=1)))
    assert caught.value.block_number == 5


def test_real_blocks_give_exactly_the_listed_transfers() -> None:
    with (FOLDER / "receipts.jsonl").open() as lines:
        raw = [log for line in lines for log in json.loads(line)["logs"] if log["topics"][:1] == [TRANSFER_TOPIC]]
    rows = decode_transfers(msgspec.convert(raw, list[Log]), "ethereum", 0, 30_000_000)
    listed = [(*row[:6], str(row[6])) for row in listed_transfers()]
    columns = ("block_number", "log_index", "transaction_hash", "token_address", "from_address", "to_address")
    assert rows.select(*columns, "amount_raw").rows() == listed
    assert len(raw) > len(listed)
