"""The proxy: each fault looks to clients like the real one, and honest calls pass unchanged."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from tests.chain.fault_proxy import (
    ActionFault,
    CutFault,
    FaultProxy,
    GarbageFault,
    HttpFault,
    LateFault,
    LostLogsFault,
    RangeFault,
    ResultFault,
    ResultSwap,
    RpcFault,
    StaleFault,
)
from tests.chain.late_answers import LATE
from tests.chain.world import World

# It tests a tool of the tests.
pytestmark = pytest.mark.release


@pytest.fixture
def proxy(world: World) -> Iterator[FaultProxy]:
    """Before a node with 12 transfers in each of blocks 2 to 6."""
    token = world.deploy_token("GOLD", 18)
    world.emit_blocks(token, blocks=5, transactions=1, events=12)
    with FaultProxy(world.node.url) as running:
        yield running


@pytest.fixture
def client() -> Iterator[urllib3.PoolManager]:
    with urllib3.PoolManager(retries=False, timeout=120) as pool:
        yield pool


def send(client: urllib3.PoolManager, proxy: FaultProxy, body: Any) -> urllib3.BaseHTTPResponse:
    return client.request("POST", proxy.url, body=json.dumps(body).encode())


def call(method: str, *params: Any, call_id: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "method": method, "params": list(params)}


def logs(first: int = 0, last: int = 6) -> dict[str, Any]:
    return call("eth_getLogs", {"fromBlock": hex(first), "toBlock": hex(last)})


def test_honest_calls_and_batches_pass(client: urllib3.PoolManager, proxy: FaultProxy, world: World) -> None:
    assert send(client, proxy, call("eth_blockNumber")).json()["result"] == hex(6)
    answers = send(client, proxy, [call("eth_chainId", call_id=1), call("eth_blockNumber", call_id=2)]).json()
    assert {answer["id"]: answer["result"] for answer in answers} == {1: hex(31337), 2: hex(6)}
    assert len(send(client, proxy, logs()).json()["result"]) == 61
    assert proxy.count("eth_blockNumber") == 2
    assert world.node.head() == 6


def test_rate_limit_acts_the_given_number_of_times(client: urllib3.PoolManager, proxy: FaultProxy) -> None:
    proxy.inject(HttpFault(status=429, retry_after="2", times=2))
    answers = [send(client, proxy, call("eth_blockNumber")) for _ in range(3)]
    assert [answer.status for answer in answers] == [429, 429, 200]
    assert answers[0].headers["Retry-After"] == "2"
    assert proxy.pending() == 0


def test_faults_of_one_method_leave_others_alone(client: urllib3.PoolManager, proxy: FaultProxy) -> None:
    proxy.inject(HttpFault(status=503, methods={"eth_getLogs"}))
    assert send(client, proxy, call("eth_blockNumber")).status == 200
    assert send(client, proxy, logs()).status == 503
    proxy.clear()
    assert send(client, proxy, logs()).status == 200


def test_error_inside_200_can_spoil_one_call_of_a_batch(client: urllib3.PoolManager, proxy: FaultProxy) -> None:
    proxy.inject(RpcFault(code=-32005, message="daily limit", times=1, methods={"eth_chainId"}))
    response = send(client, proxy, [call("eth_blockNumber", call_id=1), call("eth_chainId", call_id=2)])
    assert response.status == 200
    answers = {answer["id"]: answer for answer in response.json()}
    assert answers[1]["result"] == hex(6)
    assert answers[2]["error"] == {"code": -32005, "message": "daily limit"}


def test_wide_ranges_are_refused(client: urllib3.PoolManager, proxy: FaultProxy) -> None:
    proxy.inject(RangeFault(blocks=3))
    refused = send(client, proxy, logs(1, 4)).json()["error"]
    assert refused == {"code": -32602, "message": "query exceeds max block range 3"}
    assert len(send(client, proxy, logs(2, 4)).json()["result"]) == 36


def test_too_many_results_are_refused_with_a_range_that_works(client: urllib3.PoolManager, proxy: FaultProxy) -> None:
    proxy.inject(ResultFault(logs=30, is_suggesting=True))
    error = send(client, proxy, logs(2, 6)).json()["error"]
    assert error["code"] == -32005
    assert error["data"] == {"from": "0x2", "to": "0x3", "limit": 30}
    assert len(send(client, proxy, logs(2, 3)).json()["result"]) == 24


def test_cut_answer_breaks_the_connection(client: urllib3.PoolManager, proxy: FaultProxy) -> None:
    proxy.inject(CutFault(times=1))
    with pytest.raises(urllib3.exceptions.ProtocolError):
        send(client, proxy, logs())
    assert len(send(client, proxy, logs()).json()["result"]) == 61


def test_late_answer_is_marked_and_garbage_is_no_json(client: urllib3.PoolManager, proxy: FaultProxy) -> None:
    proxy.inject(LateFault(times=1), GarbageFault(times=1))
    assert send(client, proxy, call("eth_blockNumber")).status == LATE.status
    assert send(client, proxy, call("eth_blockNumber")).data == b"<html>Bad gateway</html>"


def test_stale_head_hides_the_newest_blocks(client: urllib3.PoolManager, proxy: FaultProxy) -> None:
    proxy.inject(StaleFault(blocks=4))
    assert send(client, proxy, call("eth_blockNumber")).json()["result"] == hex(2)
    assert send(client, proxy, call("eth_getBlockByNumber", "latest", False)).json()["result"]["number"] == hex(2)
    assert send(client, proxy, call("eth_getBlockByNumber", hex(3), False)).json()["result"] is None


def test_logs_are_left_out_once_and_results_swapped(client: urllib3.PoolManager, proxy: FaultProxy) -> None:
    proxy.inject(LostLogsFault(times=1), ResultSwap(result="0x1", methods={"eth_chainId"}))
    assert len(send(client, proxy, logs()).json()["result"]) == 60
    assert len(send(client, proxy, logs()).json()["result"]) == 61
    assert send(client, proxy, call("eth_chainId")).json()["result"] == "0x1"


def test_several_logs_are_left_out_at_once(client: urllib3.PoolManager, proxy: FaultProxy) -> None:
    proxy.inject(LostLogsFault(times=1, logs=5))
    assert len(send(client, proxy, logs(2, 6)).json()["result"]) == 55
    assert len(send(client, proxy, logs(2, 6)).json()["result"]) == 60


def test_chain_moves_just_before_an_answer(client: urllib3.PoolManager, proxy: FaultProxy, world: World) -> None:
    proxy.inject(ActionFault(action=world.mine, when=lambda calls: calls[0] == logs(2, 6), times=1))
    assert send(client, proxy, call("eth_blockNumber")).json()["result"] == hex(6)
    send(client, proxy, logs(1, 6))
    assert world.node.head() == 6
    send(client, proxy, logs(2, 6))
    assert len(send(client, proxy, logs()).json()["result"]) == 61
    assert send(client, proxy, call("eth_blockNumber")).json()["result"] == hex(7)
    assert proxy.pending() == 0


def test_one_fault_is_withdrawn_and_the_others_stay(client: urllib3.PoolManager, proxy: FaultProxy) -> None:
    refusal = HttpFault(status=503, when=lambda calls: calls[0]["method"] == "eth_getLogs")
    proxy.inject(refusal, RangeFault(blocks=3))
    assert send(client, proxy, call("eth_blockNumber")).status == 200
    assert send(client, proxy, logs(1, 4)).status == 503
    proxy.withdraw(refusal)
    assert send(client, proxy, logs(1, 4)).json()["error"]["code"] == -32602
    assert proxy.pending() == 1


def test_stopped_proxy_refuses_and_comes_back_on_its_port(client: urllib3.PoolManager, proxy: FaultProxy) -> None:
    send(client, proxy, call("eth_blockNumber"))
    proxy.stop()
    with pytest.raises((urllib3.exceptions.NewConnectionError, urllib3.exceptions.ProtocolError)):
        send(client, proxy, call("eth_blockNumber"))
    with pytest.raises(urllib3.exceptions.NewConnectionError):
        send(client, proxy, call("eth_blockNumber"))
    proxy.start()
    assert send(client, proxy, call("eth_blockNumber")).json()["result"] == hex(6)
