"""The client with a hostile node: each call is bounded in time and memory, and errors contain no secrets."""

import base64
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.extract.budget import Budget
from pipelines.extract.errors import (
    BudgetSpent,
    CallRefused,
    ExtractError,
    MalformedAnswer,
    NodeUnreachable,
    RangeRefused,
)
from pipelines.extract.evm.blocks import read_head
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.logs import TransferFilter, fetch_transfers
from pipelines.extract.jsonrpc.client import RpcClient
from tests.chain.hostile_answers import BOMBS, NEVER_ENDING, Answer, endless_hint
from tests.chain.http_server import Reply
from tests.chain.scripted_node import ScriptedNode
from tests.unit.extract.conftest import MakeClient
from tests.waiting import PATIENCE_SECONDS, Naps
from warehouse.transport import Reply as Answered
from warehouse.transport import Transport, TransportFault

_CHECKOUT = Path(__file__).parents[3]
_SHORT_SECONDS = 0.3
_MIB = 1024 * 1024


class HostileNode(ScriptedNode):
    """A node that answers each request in the same hostile way."""

    def __init__(self, hostile: Answer) -> None:
        super().__init__()
        self._hostile = hostile

    def answer(self, body: bytes) -> Reply:
        """Answer one request."""
        asked = json.loads(body)
        self.requests += 1
        return self._hostile(asked if isinstance(asked, list) else [asked])


def impatient(url: str, seconds: float = _SHORT_SECONDS, **options: Any) -> RpcClient:
    """A client with a deadline for each call and no other time limit."""
    patience = (PATIENCE_SECONDS, PATIENCE_SECONDS)
    return RpcClient("testnet", [url], EVM, timeout=patience, max_attempts=1, max_seconds=seconds, **options)


@pytest.mark.parametrize("mode", NEVER_ENDING)
def test_endless_response_is_given_up_at_the_deadline(mode: str) -> None:
    """Without the deadline, only the time limit of the test would end the call."""
    with HostileNode(NEVER_ENDING[mode]) as node:
        client = impatient(node.url)
        with pytest.raises(NodeUnreachable, match="the node: no complete answer in time") as caught:
            client.call("eth_chainId", [], str)
        assert caught.value.timed_out
        client.close()


def test_reused_connection_has_the_deadline_of_each_call() -> None:
    with ScriptedNode() as node:
        client = impatient(node.url)
        assert client.call("eth_chainId", [], str) == "0x1"
        node.faults.append(NEVER_ENDING["drip_header"]([]))
        with pytest.raises(NodeUnreachable, match="in time"):
            client.call("eth_chainId", [], str)
        # The closed connection is not reused.
        assert client.call("eth_chainId", [], str) == "0x1"
        client.close()


class Listener:
    """A port that accepts connections and hands each one to a function of the test."""

    def __init__(self, meet: Any) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._meet = meet
        self._met: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connected, _ = self._listener.accept()
            except OSError:
                return
            self._met.append(connected)
            threading.Thread(target=self._meet, args=(connected,), daemon=True).start()

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *_: object) -> None:
        for connected in (self._listener, *self._met):
            connected.close()


def never_reads(_: socket.socket) -> None:
    """Read nothing, so that the other side sends until its buffers are full."""


def drips_tls(connected: socket.socket) -> None:
    """Start a handshake record of maximum length, and send its bytes one by one."""
    try:
        connected.sendall(b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb")
        while True:
            connected.sendall(b"\0")
            threading.Event().wait(0.01)
    except OSError:
        return


@pytest.mark.parametrize(
    ("scheme", "meet", "body"),
    [("http", never_reads, b" " * 50_000_000), ("https", drips_tls, b""), ("https", never_reads, b"")],
)
def test_sending_and_tls_end_at_the_deadline(scheme: str, meet: Any, body: bytes) -> None:
    with Listener(meet) as listener:
        naps = Naps()
        transport = Transport((PATIENCE_SECONDS, PATIENCE_SECONDS), 1, naps.clock)
        with pytest.raises(TransportFault, match="in time") as caught:
            transport.send("POST", f"{scheme}://127.0.0.1:{listener.port}/", {}, body, naps.now + _SHORT_SECONDS, 1_000)
        assert caught.value.timed_out
        transport.close()


def test_socket_timeout_during_sending_is_reported_as_a_timeout() -> None:
    """The socket may time out before the deadline's timer, and urllib3 then reports a broken protocol."""
    with Listener(never_reads) as listener:
        naps = Naps()
        transport = Transport((_SHORT_SECONDS, PATIENCE_SECONDS), 1, naps.clock)
        url, deadline = f"http://127.0.0.1:{listener.port}/", naps.now + PATIENCE_SECONDS
        with pytest.raises(TransportFault, match="in time") as caught:
            transport.send("POST", url, {}, b" " * 50_000_000, deadline, 1_000)
        assert caught.value.timed_out
        transport.close()


def test_a_name_with_endless_addresses_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No address replies, and each may take the full connection timeout."""
    naps = Naps()
    tried: list[str] = []

    def connect(address: tuple[str, int], seconds: float, **_: Any) -> socket.socket:
        tried.append(address[0])
        naps.sleep(seconds)
        raise TimeoutError

    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"10.0.{n // 250}.{n % 250}", 80)) for n in range(5_000)]
    monkeypatch.setattr("warehouse.transport.create_connection", connect)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    transport = Transport((5.0, 30.0), 1, naps.clock)
    with pytest.raises(TransportFault, match="no connection in time"):
        transport.send("GET", "http://node.example/", {}, None, naps.now + 20, 1_000)
    assert len(tried) <= 5


def met_bombs(megabytes: int) -> dict[str, dict[str, Any]]:
    """Return the growth of a process's peak memory in MiB for each bomb, and the outcome of its calls."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.extract.bombed", str(megabytes)],
        cwd=_CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.ci
@pytest.mark.parametrize("megabytes", [2, pytest.param(60, marks=pytest.mark.release)])
def test_bomb_takes_little_more_memory_than_its_bytes(megabytes: int) -> None:
    """Parsed to Python lists and texts, each would take 12 to 24 times its bytes, and several may run at once."""
    for mode, met in met_bombs(megabytes).items():
        assert met["growth"] < 10 + 6 * megabytes, (mode, met)
        assert set(met["errors"]) <= {"MalformedAnswer", "CallRefused", "none"}, (mode, met)


def test_large_response_head_takes_only_a_few_megabytes(make_client: MakeClient) -> None:
    with (
        HostileNode(BOMBS["more"](60 * _MIB)) as node,
        pytest.raises(MalformedAnswer, match="larger than 4194304 bytes"),
    ):
        read_head(make_client(node))


def test_hint_of_5000_digits_is_an_ordinary_refusal(make_client: MakeClient) -> None:
    with HostileNode(endless_hint) as node:
        with pytest.raises(RangeRefused) as caught:
            list(fetch_transfers(make_client(node), TransferFilter(), 1, 100))
        assert caught.value.suggested is None
        assert "999" not in str(caught.value)


def test_time_budget_of_a_cycle_bounds_all_calls_together(make_client: MakeClient, naps: Naps) -> None:
    """Each call is within its own deadline, but retries and pauses count, too."""
    with ScriptedNode() as node:
        budget = Budget(60, 10, naps.clock)
        client = make_client(node, budget=budget, max_attempts=3)
        truly = node.handlers["eth_chainId"]

        def late(params: list[Any]) -> Any:
            naps.sleep(10)
            return truly(params)

        node.handlers["eth_chainId"] = late
        for _ in range(6):
            client.call("eth_chainId", [], str)
        with pytest.raises(BudgetSpent, match=r"used up its 60 s of this cycle.*LEDGERMART_NETWORK_SECONDS") as caught:
            client.call("eth_chainId", [], str)
        assert (caught.value.network, caught.value.call, node.requests) == ("testnet", "eth_chainId", 6)


def test_a_call_that_fails_at_the_end_of_the_budget_names_the_budget(
    make_client: MakeClient, naps: Naps, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A short last pause would leave the last request no time for its response.
    monkeypatch.setattr("pipelines.extract.pacing.random.uniform", lambda _, most: most)
    with ScriptedNode() as node:
        client = make_client(node, budget=Budget(30, 10, naps.clock), max_attempts=1_000)
        node.faults.extend([Reply(b"overloaded", status=503)] * 1_000)
        began = naps.now
        with pytest.raises(BudgetSpent, match="30 s") as caught:
            client.call("eth_chainId", [], str)
        assert naps.now - began <= 31
        assert caught.value.words == "HTTP 503 overloaded"


def test_byte_budget_counts_too_large_responses(make_client: MakeClient, naps: Naps) -> None:
    with HostileNode(BOMBS["more"](8 * _MIB)) as node:
        client = make_client(node, budget=Budget(60, 10, naps.clock))
        for _ in range(3):
            with pytest.raises(MalformedAnswer):
                read_head(client)
        with pytest.raises(BudgetSpent, match=r"10 MB of answers.*LEDGERMART_NETWORK_ANSWER_MB"):
            read_head(client)
        assert node.requests == 3


_URL = "http://user1:p%40ss%2Fword@{host}/v3/s3cretpath?k=abc&token=a%20b%2Bc"


def derived(host: str) -> Iterator[str]:
    """Return every part of the URL in every form in which a provider may repeat it."""
    yield from ("user1", "p@ss/word", "p%40ss%2Fword", "s3cretpath", "k=abc", "token=a%20b%2Bc", "a b+c", "a%20b%2Bc")
    yield base64.b64encode(b"user1:p@ss/word").decode()
    yield from (host, host.split(":")[0], host.split(":")[1])


@pytest.mark.parametrize("status", [200, 401, 500])
def test_errors_contain_no_part_of_a_url_and_no_provider_text(status: int, make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        host = node.url.removeprefix("http://")
        client = make_client(_URL.format(host=host), max_attempts=1)
        for said in derived(host):
            message = f"call us at \x1b[31m{said}\u202e"
            body = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": message, "data": message}}
            node.faults.append(Reply(json.dumps(body).encode(), status=status))
            node.faults.append(Reply(message.encode(), status=status))
            for _ in range(2):
                with pytest.raises(ExtractError) as caught:
                    client.call("eth_chainId", [], str)
                for shown in (str(caught.value), repr(caught.value), caught.value.told_of(None, None)):
                    assert said not in shown.replace("testnet: eth_chainId", "").replace("32000", "")
                    assert "call us" not in shown
                assert caught.value.words.isprintable()
        with pytest.raises(CallRefused, match="the node refuses the call"):
            client.call("eth_other", [], str)


def test_response_is_read_over_reused_connections(naps: Naps) -> None:
    with ScriptedNode() as node:
        transport = Transport((60.0, 60.0), 1, naps.clock)
        body = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'
        for _ in range(3):
            reply = transport.send("POST", node.url, {}, body, naps.now + 60, 1_000)
            assert isinstance(reply, Answered)
            assert json.loads(reply.body)["result"] == "0x1"
        transport.close()
