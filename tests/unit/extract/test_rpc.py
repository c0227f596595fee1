"""The client against a node that misbehaves over a real socket."""

import gzip
import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipelines.extract.errors import (
    CallRefused,
    ExtractError,
    MalformedAnswer,
    NodeUnreachable,
    RangeRefused,
    RateLimited,
    StateUnavailable,
    WrongChain,
)
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.faults import is_revert
from pipelines.extract.jsonrpc.client import Call, RpcClient
from pipelines.extract.jsonrpc.endpoint import other_urls
from pipelines.extract.pacing import Pacer
from pipelines.rows import RpcUsage
from tests.chain.http_server import Reply
from tests.chain.late_answers import LATE
from tests.chain.scripted_node import (
    Fault,
    NodeError,
    ScriptedNode,
    cut_off,
    error_inside_200,
    rate_limited,
    slow,
    truncated,
    with_ids,
)
from tests.unit.extract.conftest import MakeClient
from tests.waiting import Naps

HEADERS: list[Call] = [("eth_getBlockByNumber", [hex(number), False]) for number in range(30)]


def refuse(code: int, message: str) -> Callable[[list[Any]], Any]:
    def handler(_: list[Any]) -> Any:
        raise NodeError(code, message)

    return handler


def test_a_result_is_decoded_to_its_type(make_client: MakeClient) -> None:
    with ScriptedNode(head=7) as node:
        client = make_client(node)
        assert client.call("eth_blockNumber", [], str) == "0x7"
        assert client.provider == node.url.removeprefix("http://")
        assert client.batch([("eth_blockNumber", []), ("eth_chainId", [])], str) == ["0x7", "0x1"]
        assert client.batch([], str) == []


@pytest.mark.parametrize(
    "fault",
    [
        rate_limited(),
        Reply(b"<html>bad gateway</html>", status=502),
        Reply(b"", status=503),
        error_inside_200(-32005, "limit exceeded"),
        error_inside_200(-32000, "rate limit reached, try again"),
        cut_off,
        truncated,
        LATE,
        Reply(b""),
    ],
)
def test_temporary_faults_are_retried(make_client: MakeClient, naps: Naps, fault: Fault) -> None:
    with ScriptedNode() as node:
        client = make_client(node)
        node.faults.extend([fault, fault])
        assert client.call("eth_blockNumber", [], str) == "0x64"
        assert node.requests == 3
        assert len(naps.taken) >= 2
        node.faults.extend([fault, fault])
        assert [header["number"] for header in client.batch(HEADERS, dict)] == [hex(number) for number in range(30)]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (rate_limited(), RateLimited),
        (Reply(b"", status=500), NodeUnreachable),
        (cut_off, NodeUnreachable),
    ],
)
def test_permanent_faults_fail_after_the_attempts(
    make_client: MakeClient, fault: Fault, kind: type[ExtractError]
) -> None:
    with ScriptedNode() as node:
        client = make_client(node, max_attempts=4)
        node.faults.extend([fault] * 10)
        with pytest.raises(kind) as caught:
            client.call("eth_getLogs", [{"fromBlock": "0x5", "toBlock": "0x9"}], list)
        assert node.requests == 4
        assert (caught.value.network, caught.value.call) == ("testnet", "eth_getLogs")
        assert (caught.value.from_block, caught.value.to_block) == (5, 9)
        assert str(caught.value).startswith("testnet: eth_getLogs of blocks 5 to 9: the node")


def test_missing_node_is_unreachable(make_client: MakeClient, naps: Naps) -> None:
    node = ScriptedNode()
    with pytest.raises(NodeUnreachable, match="no connection"):
        make_client(node, max_attempts=3).call("eth_chainId", [], str)
    assert len(naps.taken) == 2


def test_retry_after_is_respected_within_bounds(make_client: MakeClient, naps: Naps) -> None:
    with ScriptedNode() as node:
        client = make_client(node)
        node.faults.append(rate_limited("7"))
        client.call("eth_chainId", [], str)
        assert 7 <= sum(naps.taken) < 7.1
        node.faults.append(Reply(b"", status=503, headers={"Retry-After": "9"}))
        client.call("eth_chainId", [], str)
        assert 16 <= sum(naps.taken) < 16.3
        naps.taken.clear()
        node.faults.append(rate_limited("100000"))
        client.call("eth_chainId", [], str)
        assert sum(naps.taken) < 61


def test_the_time_of_a_call_is_bounded(make_client: MakeClient, naps: Naps) -> None:
    with ScriptedNode() as node:
        client = make_client(node, max_attempts=1_000, max_seconds=100.0)
        node.faults.extend([rate_limited("30")] * 50)
        began = naps.now
        with pytest.raises(RateLimited):
            client.call("eth_chainId", [], str)
        assert naps.now - began <= 100
        node.faults.clear()
        node.faults.extend([Reply(b"", status=500)] * 500)
        began = naps.now
        with pytest.raises(NodeUnreachable):
            client.call("eth_chainId", [], str)
        assert naps.now - began <= 101


def test_rate_limit_error_slows_every_thread_of_the_client() -> None:
    naps = Naps()
    pacer = Pacer(naps.sleep, naps.clock)
    assert pacer.wait_turn(naps.now + 100)
    assert naps.taken == []
    pacer.slow_down(5)
    pacer.slow_down(5)
    began = naps.now
    assert pacer.wait_turn(began + 100)
    assert naps.now == began + 5
    assert pacer.wait_turn(began + 100)
    assert naps.now == pytest.approx(began + 5.05)
    pacer.slow_down(50)
    assert not pacer.wait_turn(naps.now + 10)
    for _ in range(100):
        pacer.succeeded()
    naps.now += 100
    naps.taken.clear()
    assert pacer.wait_turn(naps.now)
    assert pacer.wait_turn(naps.now)
    assert naps.taken == []


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [(-32601, "method not found", CallRefused), (-32000, "missing trie node", StateUnavailable)],
)
def test_other_errors_are_never_retried(
    make_client: MakeClient, naps: Naps, code: int, message: str, kind: type[ExtractError]
) -> None:
    with ScriptedNode() as node:
        node.handlers["eth_getBalance"] = refuse(code, message)
        with pytest.raises(kind, match=f"code {code}") as caught:
            make_client(node).call("eth_getBalance", ["0x", "latest"], str)
        assert (node.requests, naps.taken) == (1, [])
        assert caught.value.words == message
        assert message not in str(caught.value)


def test_a_refused_call_keeps_code_and_message(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        node.handlers["eth_call"] = refuse(3, "execution reverted: no")
        with pytest.raises(CallRefused) as caught:
            make_client(node).call("eth_call", [{}, "latest"], str)
        assert (caught.value.code, caught.value.message) == (3, "execution reverted: no")
        assert is_revert(caught.value)


def test_an_answer_of_another_type_is_malformed(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        client = make_client(node)
        with pytest.raises(MalformedAnswer):
            client.call("eth_chainId", [], list)
        with pytest.raises(MalformedAnswer):
            client.batch(HEADERS, str)
        for body in (b"[]", b"1", b'"x"', b"{}", b'{"id": 1}'):
            node.faults.append(Reply(body))
            with pytest.raises(MalformedAnswer):
                client.call("eth_chainId", [], str)


@pytest.mark.parametrize(
    "change",
    [
        lambda ids: [ids[1], *ids[1:]],
        lambda ids: ids[1:],
        lambda ids: [*ids[1:], 999_999],
        lambda ids: [str(id_) for id_ in ids],
    ],
    ids=["twice", "missing", "foreign", "as text"],
)
def test_wrong_ids_in_a_batch_are_malformed(make_client: MakeClient, change: Callable[[list[Any]], list[Any]]) -> None:
    with ScriptedNode() as node:
        node.faults.append(with_ids(change))
        with pytest.raises(MalformedAnswer, match="ids"):
            make_client(node).batch(HEADERS, dict)


def test_a_wrong_id_of_a_single_answer_is_malformed(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        node.faults.append(with_ids(lambda ids: [ids[0] + 1]))
        with pytest.raises(MalformedAnswer, match="another call"):
            make_client(node).call("eth_chainId", [], str)


def test_large_batches_are_split(make_client: MakeClient) -> None:
    calls: list[Call] = [("eth_getBlockByNumber", [hex(number), False]) for number in range(101)] * 3
    with ScriptedNode() as node:
        found = make_client(node).batch(calls, dict)
        assert [header["number"] for header in found] == [hex(number) for number in range(101)] * 3
        assert node.requests == 4


@pytest.mark.parametrize("limit", [1, 3, 20])
def test_batches_shrink_to_the_providers_limit_and_stay_small(make_client: MakeClient, limit: int) -> None:
    with ScriptedNode(batch_limit=limit) as node:
        client = make_client(node)
        for _ in range(2):
            node.requests = 0
            found = client.batch(HEADERS, dict)
            assert [header["number"] for header in found] == [hex(number) for number in range(30)]
        assert node.requests <= 30 // (limit // 2 + 1) + 1


@pytest.mark.parametrize("status", [200, 400, 405, 413])
def test_provider_without_batches_gets_single_requests(make_client: MakeClient, status: int) -> None:
    with ScriptedNode() as node:
        whole = node.answer

        def single_only(body: bytes) -> Reply:
            if body.startswith(b"["):
                return Reply(b'{"error": "no batches"}' if status != 405 else b"no", status=status)
            return whole(body)

        node.answer = single_only  # type: ignore[method-assign]
        found = make_client(node).batch(HEADERS[:5], dict)
        assert [header["number"] for header in found] == ["0x0", "0x1", "0x2", "0x3", "0x4"]


def test_only_the_delayed_calls_of_a_batch_are_retried(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        truly = node.handlers["eth_getBlockByNumber"]
        limited = {"0x3", "0x5"}

        def sometimes(params: list[Any]) -> Any:
            if params[0] in limited:
                limited.discard(params[0])
                raise NodeError(429, "Your app has exceeded its compute units per second capacity")
            return truly(params)

        node.handlers["eth_getBlockByNumber"] = sometimes
        found = make_client(node).batch(HEADERS, dict)
        assert [header["number"] for header in found] == [hex(number) for number in range(30)]
        assert len(node.calls) == 32


@pytest.mark.parametrize("batch_limit", [None, 1])
def test_errors_in_a_batch_are_raised_or_returned_in_place(make_client: MakeClient, batch_limit: int | None) -> None:
    calls: list[Call] = [
        ("eth_chainId", []),
        ("eth_nothing", []),
        ("eth_getBalance", ["0x", "0x1"]),
        ("eth_chainId", []),
    ]
    with ScriptedNode(batch_limit=batch_limit) as node:
        node.handlers["eth_getBalance"] = refuse(-32000, "missing trie node")
        client = make_client(node)
        with pytest.raises(CallRefused, match="code -32601"):
            client.batch(calls, str)
        first, second, third, fourth = client.batch(calls, str, allow_errors=True)
        assert (first, fourth) == ("0x1", "0x1")
        assert isinstance(second, CallRefused)
        assert second.code == -32601
        assert isinstance(third, StateUnavailable)


def test_next_url_takes_over_permanently(make_client: MakeClient) -> None:
    with ScriptedNode() as first, ScriptedNode() as second:
        client = make_client(first, second, max_attempts=2)
        first.faults.extend([Reply(b"", status=500)] * 2)
        assert client.call("eth_chainId", [], str) == "0x1"
        assert client.call("eth_chainId", [], str) == "0x1"
        assert (first.requests, second.requests) == (2, 2)
        second.stop()
        assert client.call("eth_chainId", [], str) == "0x1"
        assert first.requests == 3


def test_url_that_denies_access_is_skipped_at_once(make_client: MakeClient) -> None:
    with ScriptedNode() as first, ScriptedNode() as second:
        first.faults.append(Reply(b'{"message": "invalid key"}', status=401))
        assert make_client(first, second).call("eth_chainId", [], str) == "0x1"
        assert (first.requests, second.requests) == (1, 1)
        first.faults.append(Reply(b'{"message": "invalid key"}', status=401))
        with pytest.raises(CallRefused, match="HTTP status 401"):
            make_client(first).call("eth_chainId", [], str)


def test_chain_id_of_every_url_is_checked_before_use(make_client: MakeClient) -> None:
    with ScriptedNode(chain_id=5) as first, ScriptedNode(chain_id=6) as second:
        client = make_client(first, second, max_attempts=1)
        client.expect_chain("5")
        assert client.call("eth_blockNumber", [], str) == "0x64"
        first.faults.append(Reply(b"", status=500))
        with pytest.raises(WrongChain, match="serves chain 6, not 5"):
            client.call("eth_blockNumber", [], str)
        assert [method for method, _ in second.calls] == ["eth_chainId"]
        assert client.call("eth_blockNumber", [], str) == "0x64"


@pytest.mark.parametrize("is_batch", [True, False])
def test_answers_nest_as_deep_as_contracts_call_each_other(make_client: MakeClient, is_batch: bool) -> None:
    def nested(levels: int) -> Callable[[Reply], Reply]:
        def spoil(reply: Reply) -> Reply:
            return replace(reply, body=reply.body.replace(b'"0x64"', b"[" * levels + b"]" * levels))

        return spoil

    calls: list[Call] = [("eth_blockNumber", [])] * (2 if is_batch else 1)
    with ScriptedNode() as node:
        client = make_client(node)
        node.faults.append(nested(2 * 1_024))
        assert all(isinstance(answer, list) for answer in client.batch(calls, list))
        node.faults.append(nested(100_000))
        with pytest.raises(MalformedAnswer, match="nested too deeply"):
            client.batch(calls, list)


def test_second_readings_use_urls_of_other_hosts(make_client: MakeClient) -> None:
    urls = [
        "https://me:secret@One.example/key1",
        "https://one.example/key2",
        "https://two.example?key=3",
        "https://two.example:8545/",
        "http://[::1]:8545",
    ]
    assert other_urls(urls, "one.example") == urls[2:]
    assert other_urls(urls, "two.example:8545") == urls[:3] + urls[4:]
    assert other_urls(urls, "[::1]:8545") == urls[:4]
    assert other_urls(urls[:2], "one.example") == []
    with ScriptedNode() as first, ScriptedNode() as second:
        client = make_client(first, second, max_attempts=1)
        assert other_urls([first.url, second.url], client.provider) == [second.url]
        first.faults.append(Reply(b"", status=500))
        client.call("eth_blockNumber", [], str)
        assert other_urls([first.url, second.url], client.provider) == [first.url]


def test_keys_in_urls_are_never_shown(make_client: MakeClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with ScriptedNode() as node:
        url = node.url.replace("http://", "http://someone:passw0rd@") + "/v3/s3cretkey?token=t0ken99"
        client = make_client(url, max_attempts=1)
        node.faults.append(error_inside_200(-32000, f"project s3cretkey with t0ken99 at {url} is unknown"))
        shown = [client.provider]
        with pytest.raises(CallRefused) as caught:
            client.call("eth_chainId", [], str)
        shown += [str(caught.value), repr(caught.value), caught.value.message, repr(caught.value.__cause__)]
        node.faults.append(Reply(b"no s3cretkey", status=500))
        with pytest.raises(NodeUnreachable) as failed:
            client.call("eth_chainId", [], str)
        shown += [str(failed.value), repr(failed.value)]
    with pytest.raises(NodeUnreachable) as failed:
        client.call("eth_chainId", [], str)
    shown += [str(failed.value), repr(failed.value.__cause__), caplog.text]
    for secret in ("s3cretkey", "passw0rd", "t0ken99"):
        assert secret not in "\n".join(shown)
    for broken in ("ftp://h0st/s3cretkey", "http://h:port/s3cretkey", "", "s3cretkey"):
        with pytest.raises(ValueError, match="RPC URL") as invalid:
            make_client(broken)
        assert "s3cretkey" not in str(invalid.value)


def test_compressed_answers_are_read(make_client: MakeClient) -> None:
    def compressed(reply: Reply) -> Reply:
        return replace(reply, body=gzip.compress(reply.body), headers={"Content-Encoding": "gzip"})

    with ScriptedNode() as node:
        client = make_client(node, max_response_bytes=1_000_000)
        node.faults.append(compressed)
        assert client.call("eth_chainId", [], str) == "0x1"
        bomb = gzip.compress(json.dumps({"jsonrpc": "2.0", "id": 1, "result": "0" * 20_000_000}).encode())
        node.faults.append(Reply(bomb, headers={"Content-Encoding": "gzip"}))
        with pytest.raises(MalformedAnswer, match="larger than 1000000 bytes"):
            client.call("eth_chainId", [], str)


def test_too_large_response_refuses_a_range_or_splits_a_batch(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        client = make_client(node, max_response_bytes=4_000)
        node.handlers["eth_getLogs"] = lambda _: ["x" * 5_000]
        with pytest.raises(RangeRefused, match="larger than 4000 bytes"):
            client.call("eth_getLogs", [{"fromBlock": "0x1", "toBlock": "0x2"}], list)
        assert len(client.batch(HEADERS, dict)) == 30
        assert len(client.batch(HEADERS[:2], dict)) == 2


def test_dripping_body_is_given_up_in_time() -> None:
    with ScriptedNode() as node:
        client = RpcClient("testnet", [node.url], EVM, timeout=(60.0, 60.0), max_attempts=1, max_seconds=0.5)
        # A client without the limit would receive the response.
        node.faults.append(slow(50))
        with pytest.raises(NodeUnreachable, match="in time") as caught:
            client.call("eth_chainId", [], str)
        assert caught.value.timed_out
        client.close()


def test_number_of_concurrent_requests_is_limited(make_client: MakeClient) -> None:
    under_way, most = 0, 0
    lock, together = threading.Lock(), threading.Barrier(3)

    def watched(_: list[Any]) -> str:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        together.wait()
        time.sleep(0.02)
        with lock:
            under_way -= 1
        return "0x1"

    with ScriptedNode() as node:
        node.handlers["eth_chainId"] = watched
        client = make_client(node, max_in_flight=3)
        threads = [threading.Thread(target=client.call, args=("eth_chainId", [], str)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == 3


def test_a_client_without_urls_is_refused() -> None:
    with pytest.raises(ValueError, match="no RPC URL"):
        RpcClient("testnet", [], EVM)


def test_every_sent_call_is_counted_despite_failures(make_client: MakeClient) -> None:
    with ScriptedNode(head=40) as node:
        client = make_client(node)
        assert client.meter.take() == RpcUsage(0, 0)
        client.call("eth_blockNumber", [], str)
        single = client.meter.take()
        assert single.requests == 1
        assert 0 < single.answer_bytes < 100
        answers = client.batch(HEADERS, dict[str, Any])
        together = client.meter.take()
        assert together.requests == len(HEADERS)
        assert together.answer_bytes > len(json.dumps(answers, separators=(",", ":")))
        node.faults.extend([rate_limited(), cut_off])
        client.batch(HEADERS, dict[str, Any])
        assert client.meter.take().requests == 3 * len(HEADERS)
        assert client.meter.take() == RpcUsage(0, 0)
