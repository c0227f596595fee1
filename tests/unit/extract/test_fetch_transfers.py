"""Fetching transfers from limited, failing and lying providers: every row exactly once, or an error."""

import random
from typing import Any

import pytest

from pipelines.extract.errors import ChainReorganised, MalformedAnswer, NodeUnreachable, RangeRefused, RateLimited
from pipelines.extract.evm.logs import TransferFilter, Transfers, fetch_transfers
from pipelines.extract.jsonrpc.client import RpcClient
from tests.chain.http_server import Reply
from tests.chain.late_answers import LATE
from tests.chain.scripted_node import (
    NodeError,
    RangeLimit,
    ScriptedNode,
    alchemy,
    block_hash,
    cut_off,
    error_inside_200,
    infura,
    quicknode,
    rate_limited,
    reth,
    transfer_log,
    truncated,
)
from tests.unit.extract.conftest import MakeClient
from tests.waiting import Naps

BLOCKS = 900


def sample_logs() -> list[dict[str, Any]]:
    """Return logs with quiet and busy stretches, and one very full block."""
    chance = random.Random(7)
    found = []
    for block in range(BLOCKS):
        count = 60 if block == 333 else chance.choice([0, 0, 1, 9]) if 400 < block < 600 else int(block % 7 == 0)
        found += [transfer_log(block, index, block * 1_000 + index) for index in range(count)]
    return found


LOGS = sample_logs()
EXPECTED = [int(log["data"], 16) for log in LOGS]


def fetch(client: RpcClient, last: int = BLOCKS - 1, **options: Any) -> list[Transfers]:
    return list(fetch_transfers(client, options.pop("filter", TransferFilter()), 0, last, **options))


def amounts(pieces: list[Transfers]) -> list[int]:
    return [int(amount) for piece in pieces for amount in piece.rows["amount_raw"]]


def assert_complete(pieces: list[Transfers], last: int = BLOCKS - 1) -> None:
    position = 0
    for piece in pieces:
        assert piece.from_block == position
        assert piece.to_block >= piece.from_block
        assert piece.rows.is_empty() or piece.rows["block_number"].is_between(piece.from_block, piece.to_block).all()
        position = piece.to_block + 1
    assert position == last + 1
    assert amounts(pieces) == [amount for amount in EXPECTED if amount // 1_000 <= last]


@pytest.mark.parametrize(
    ("limit", "in_flight", "last"),
    [
        (infura(60), 1, BLOCKS - 1),
        (alchemy(1), 4, 99),
        (quicknode(20), 4, BLOCKS - 1),
        (reth(61), 1, BLOCKS - 1),
        (reth(61, same_range_back=True), 4, BLOCKS - 1),
    ],
    ids=["infura", "alchemy", "quicknode", "reth", "reth, same range"],
)
def test_every_row_once_within_any_limit(make_client: MakeClient, limit: RangeLimit, in_flight: int, last: int) -> None:
    with ScriptedNode(head=BLOCKS, logs=LOGS, range_limit=limit) as node:
        pieces = fetch(make_client(node), last, in_flight=in_flight)
        assert_complete(pieces, last)
        assert node.requests < 1.3 * len(pieces) + 30


@pytest.mark.parametrize("seed", range(2))
def test_every_row_once_under_faults(make_client: MakeClient, seed: int) -> None:
    chance = random.Random(seed)
    faults = [
        rate_limited(),
        rate_limited("2"),
        Reply(b"", status=503),
        error_inside_200(-32005, "limit exceeded"),
        cut_off,
        truncated,
    ]
    with ScriptedNode(head=BLOCKS, logs=LOGS, range_limit=infura(70)) as node:
        node.faults.extend(chance.choice([*faults, None, None, None]) for _ in range(60))
        # The naps of concurrent calls are summed here as if sequential.
        assert_complete(fetch(make_client(node, max_attempts=20, max_seconds=1_000.0)))


def test_a_rate_limit_never_splits(make_client: MakeClient) -> None:
    with ScriptedNode(head=BLOCKS, logs=LOGS) as node:
        client = make_client(node)
        undisturbed = [(piece.from_block, piece.to_block) for piece in fetch(client, in_flight=1)]
        node.faults.extend([rate_limited()] * 4)
        assert [(piece.from_block, piece.to_block) for piece in fetch(client, in_flight=1)] == undisturbed


def test_empty_ranges_are_yielded_too(make_client: MakeClient) -> None:
    with ScriptedNode(head=50_000) as node:
        pieces = fetch(make_client(node), 49_999)
    assert pieces[0].from_block == 0
    assert pieces[-1].to_block == 49_999
    assert all(piece.rows.is_empty() and piece.ignored == 0 for piece in pieces)
    assert len(pieces) < 25


def test_empty_range_or_filter_sends_no_request(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        client = make_client(node)
        assert list(fetch_transfers(client, TransferFilter(), 5, 4)) == []
        (piece,) = fetch_transfers(client, TransferFilter(recipients=frozenset()), 5, 9)
        assert (piece.from_block, piece.to_block, piece.rows.height) == (5, 9, 0)
        assert node.requests == 0


def test_max_range_is_kept(make_client: MakeClient) -> None:
    with ScriptedNode(head=BLOCKS, logs=LOGS, range_limit=quicknode(8)) as node:
        pieces = fetch(make_client(node), max_range=8)
        assert_complete(pieces)
        assert node.requests == len(pieces)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32001, "Unable to complete request at this time."),
        (-32603, "Internal server error. Forwarder error: 1000."),
        (-32000, "context deadline exceeded"),
        (-32000, "no"),
    ],
)
@pytest.mark.parametrize("widest", [200, 10, 1])
def test_range_refused_in_unknown_words_is_narrowed(
    make_client: MakeClient, code: int, message: str, widest: int
) -> None:
    def limit(first: int, last: int, _: int) -> None:
        if last - first >= widest:
            raise NodeError(code, message)

    with ScriptedNode(head=BLOCKS, logs=LOGS, range_limit=limit) as node:
        assert_complete(fetch(make_client(node)))


def test_refusal_of_a_single_block_raises_an_error_with_its_number(make_client: MakeClient) -> None:
    def limit(first: int, last: int, logs: int) -> None:
        if logs > 50:
            raise NodeError(-32000, "logs matched by query exceeds limit of 50")

    with ScriptedNode(head=BLOCKS, logs=LOGS, range_limit=limit) as node:
        client = make_client(node)
        pieces: list[Transfers] = []
        with pytest.raises(RangeRefused) as caught:
            pieces.extend(fetch_transfers(client, TransferFilter(), 0, BLOCKS - 1))
        assert (caught.value.from_block, caught.value.to_block) == (333, 333)
        assert pieces[-1].to_block < 333


def test_an_oversized_answer_is_split(make_client: MakeClient) -> None:
    with ScriptedNode(head=BLOCKS, logs=LOGS) as node:
        assert_complete(fetch(make_client(node, max_response_bytes=60_000)))


def test_slow_range_is_split_and_a_dead_node_given_up(make_client: MakeClient) -> None:
    with ScriptedNode(head=BLOCKS, logs=LOGS) as node:
        client = make_client(node)
        node.faults.append(LATE)
        pieces = fetch(client)
        assert_complete(pieces)
        assert pieces[0].to_block == 9
        node.faults.extend([LATE] * 30)
        with pytest.raises(NodeUnreachable):
            fetch(client)
        assert len(node.faults) > 20


def test_lasting_faults_are_raised_with_call_and_range(make_client: MakeClient) -> None:
    with ScriptedNode(head=BLOCKS, logs=LOGS) as node:
        node.faults.extend([None, *[rate_limited()] * 100])
        with pytest.raises(RateLimited) as caught:
            fetch(make_client(node), in_flight=1)
        assert caught.value.call == "eth_getLogs"
        assert caught.value.from_block == 20


def test_prefetching_is_bounded(make_client: MakeClient) -> None:
    with ScriptedNode(head=BLOCKS, logs=LOGS) as node:
        pieces = fetch_transfers(make_client(node), TransferFilter(), 0, BLOCKS - 1, max_range=10, in_flight=3)
        for taken, piece in enumerate(pieces, start=1):
            assert piece.to_block == taken * 10 - 1
            assert node.requests <= taken + 3
            if taken == 20:
                break
        pieces.close()  # type: ignore[attr-defined]
        assert node.requests <= 24


def test_filter_fields_are_sent_and_combined_with_and(make_client: MakeClient) -> None:
    tokens, parties = ["0x" + f"{n:02x}" * 20 for n in (0xA0, 0xA1)], ["0x" + f"{n:02x}" * 20 for n in range(1, 4)]
    raw = [
        transfer_log(block, 9 * t + 3 * s + r, 100 * t + 10 * s + r, token=token, sender=sender, recipient=recipient)
        for block in range(3)
        for t, token in enumerate(tokens)
        for s, sender in enumerate(parties)
        for r, recipient in enumerate(parties)
    ]
    with ScriptedNode(logs=raw) as node:
        client = make_client(node)
        for tokens_set, senders, recipients in (
            (tokens[:1], None, None),
            (None, parties[:1], None),
            (None, None, parties[1:]),
            (tokens[1:], parties[:2], parties[2:]),
        ):
            wanted = TransferFilter(
                *(None if part is None else frozenset(part) for part in (tokens_set, senders, recipients))
            )
            rows = fetch(client, 99, filter=wanted)[0].rows
            expected = [
                log
                for log in raw
                if (tokens_set is None or log["address"] in tokens_set)
                and (senders is None or "0x" + log["topics"][1][26:] in senders)
                and (recipients is None or "0x" + log["topics"][2][26:] in recipients)
            ]
            assert rows["log_index"].to_list() == [int(log["logIndex"], 16) for log in expected]


def test_long_lists_are_split_and_merged_in_order(make_client: MakeClient) -> None:
    wallets = [f"0x{n:040x}" for n in range(1, 451)]
    raw = [transfer_log(n % 10, n, n, recipient=wallet) for n, wallet in enumerate(wallets)]
    with ScriptedNode(logs=raw) as node:
        pieces = fetch(make_client(node), 19, filter=TransferFilter(recipients=frozenset(wallets)))
        assert [len(params[0]["topics"][2]) for _, params in node.calls] == [200, 200, 50]
        (piece,) = pieces
        assert piece.rows.height == 450
        assert piece.rows.select("block_number", "log_index").rows() == sorted((n % 10, n) for n in range(450))


def test_nfts_are_counted_as_ignored(make_client: MakeClient) -> None:
    nft = transfer_log(3, 1, 0, data="0x")
    nft["topics"].append("0x" + "0" * 63 + "5")
    with ScriptedNode(logs=[transfer_log(3, 0, 5), nft, transfer_log(3, 2, 6)]) as node:
        (piece,) = fetch(make_client(node), 9)
        assert (amounts([piece]), piece.ignored) == ([5, 6], 1)


@pytest.mark.parametrize(
    "stray",
    [
        transfer_log(2_000, 1, 1),
        transfer_log(3, 1, 1, token="0x" + "bb" * 20),
        transfer_log(3, 1, 1, sender="0x" + "77" * 20),
        transfer_log(3, 1, 1, recipient="0x" + "77" * 20),
        transfer_log(3, 1, 1, token="0x" + "bb" * 20, data="0x"),
        transfer_log(3, 1, 1, sender="0x" + "77" * 20, data="0x"),
    ],
)
def test_responses_outside_the_request_are_malformed(make_client: MakeClient, stray: dict[str, Any]) -> None:
    wanted = TransferFilter(
        tokens=frozenset({"0x" + "aa" * 20}),
        senders=frozenset({"0x" + "01" * 20}),
        recipients=frozenset({"0x" + "02" * 20}),
    )
    with ScriptedNode() as node:
        node.handlers["eth_getLogs"] = lambda _: [transfer_log(3, 0, 1), stray]
        with pytest.raises(MalformedAnswer, match=r"log \S+ of transaction 0x\S+ of block \S+ was not requested"):
            fetch(make_client(node), 9, filter=wanted)


@pytest.mark.parametrize("answer", [None, {}, "0x", [1], [{"address": "0x"}], [transfer_log(1, 1, 1, topics="0x")]])
def test_answers_of_another_form_are_malformed(make_client: MakeClient, answer: Any) -> None:
    with ScriptedNode() as node:
        node.handlers["eth_getLogs"] = lambda _: answer
        with pytest.raises(MalformedAnswer):
            fetch(make_client(node), 9)


def test_reorganisation_between_parts_of_a_filter_is_detected(make_client: MakeClient, naps: Naps) -> None:
    wallets = [f"0x{n:040x}" for n in range(1, 301)]
    with ScriptedNode() as node:
        forks = iter(range(10))

        def moving(params: list[Any]) -> list[dict[str, Any]]:
            fork = next(forks)
            wallet = "0x" + params[0]["topics"][1][0][26:]
            return [transfer_log(5, fork, 1, sender=wallet, blockHash=block_hash(5, fork))]

        node.handlers["eth_getLogs"] = moving
        with pytest.raises(ChainReorganised) as caught:
            fetch(make_client(node), 9, filter=TransferFilter(senders=frozenset(wallets)))
        assert caught.value.block_number == 5


def test_log_that_matches_several_filters_is_returned_once(make_client: MakeClient) -> None:
    first, second, third = (f"0x{n:040x}" for n in range(1, 4))
    raw = [
        transfer_log(5, 0, 10, sender=first, recipient=second),
        transfer_log(5, 1, 11, sender=third, recipient=first),
        transfer_log(6, 0, 12, sender=second, recipient=third),
        transfer_log(6, 1, 13, sender=third, recipient=third),
    ]
    watched = frozenset({first, second})
    wanted = [TransferFilter(senders=watched), TransferFilter(recipients=watched)]
    with ScriptedNode(logs=raw) as node:
        client = make_client(node)
        (piece,) = fetch(client, 9, filter=wanted)
        assert amounts([piece]) == [10, 11, 12]
        truly = node.handlers["eth_getLogs"]
        forks = iter([0, 1])

        def moving(params: list[Any]) -> list[dict[str, Any]]:
            fork = next(forks)
            return [log | {"blockHash": block_hash(int(log["blockNumber"], 16), fork)} for log in truly(params)]

        node.handlers["eth_getLogs"] = moving
        with pytest.raises(ChainReorganised):
            fetch(client, 9, filter=wanted)
        node.handlers["eth_getLogs"] = lambda params: truly(params) * 2
        with pytest.raises(MalformedAnswer, match="twice"):
            fetch(client, 9, filter=wanted)
