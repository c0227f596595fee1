"""Limits of the server that `ledgermart api` starts, over sockets."""

import http.client
import json
import logging
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from ipaddress import ip_network
from select import select

import httpx
import pytest

from api.app import create_app
from api.http.connections import ConnectionSweeper
from api.server import MOST_HEAD_BYTES
from tests.api.world import World
from tests.chain.process import free_port, tied_to_parent
from tests.e2e.serving import serving_app
from tests.waiting import eventually

_SERVE = """
import sys
from api.server import serve
from control.settings import load_settings
serve(load_settings({"LEDGERMART_DATA_DIR": sys.argv[1], "LEDGERMART_NETWORKS": sys.argv[2]}), "127.0.0.1",
      int(sys.argv[3]))
"""
_LIVE = b"GET /health/live HTTP/1.1\r\nHost: a\r\n"


@pytest.fixture
def port(world: World) -> Iterator[int]:
    found = free_port()
    with serving_app(create_app(replace(world.settings, api_port=found)), found, head_seconds=0.5):
        yield found


def received(port: int, *pieces: bytes) -> bytes:
    """Send pieces over a new connection; return all bytes until the server closes it."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        answer = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
            while found := connection.recv(1 << 16):
                answer += found
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server closed the connection during the request
        return answer


def status(answer: bytes) -> int | None:
    """Return the status of a response; None if the connection was closed without one."""
    return int(answer.split(b" ")[1]) if answer else None


def is_live(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request("GET", "/health/live")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def test_header_of_sixty_megabytes_is_refused_without_reading_it(port: int) -> None:
    sent = 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        try:
            connection.sendall(_LIVE + b"X-Large: ")
            for _ in range(60):
                connection.sendall(b"a" * 1_000_000)
                sent += 1
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert sent < 60
    assert is_live(port)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (b"".join(b"X-%d: 1\r\n" % number for number in range(90)), 200),
        (b"".join(b"X-%d: 1\r\n" % number for number in range(110)), 431),
        (b"X-Large: " + b"a" * (MOST_HEAD_BYTES - 1_000) + b"\r\n", 200),
        (b"X-Large: " + b"a" * 3 * MOST_HEAD_BYTES + b"\r\n", 431),
    ],
    ids=["90 headers", "110 headers", "below 64 kB", "192 kB"],
)
def test_head_is_limited_in_headers_and_bytes(port: int, headers: bytes, expected: int) -> None:
    answer = received(port, _LIVE + headers + b"Connection: close\r\n\r\n")
    assert status(answer) in ((200,) if expected == 200 else (431, None))


@pytest.mark.parametrize("sent", [b"", b"GET", _LIVE, _LIVE + b"X-Half: "], ids=["nothing", "line", "head", "header"])
def test_connection_without_a_whole_head_is_closed(port: int, sent: bytes) -> None:
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
    for connection in connections:
        connection.sendall(sent)
    assert is_live(port)
    # Every connection is closed, so no request waits forever.
    assert {connection.recv(1 << 16)[:12] for connection in connections} <= {b"", b"HTTP/1.1 408"}
    for connection in connections:
        connection.close()


def test_connection_that_stays_idle_behind_an_answer_is_closed(port: int) -> None:
    assert status(received(port, _LIVE + b"\r\n")) == 200


@pytest.fixture
def swept(world: World) -> Callable[..., AbstractContextManager[int]]:
    """Serve with limits on the connections of one client, and without one on the time of a head; yield the port."""

    @contextmanager
    def serve(**limits: float) -> Iterator[int]:
        found = free_port()
        sweeper = ConnectionSweeper(found, [ip_network("127.0.0.1")], **limits)  # type: ignore[arg-type]
        with serving_app(create_app(replace(world.settings, api_port=found)), found, 3600, sweeper):
            yield found

    return serve


def test_connections_of_one_client_beyond_its_share_are_closed_and_others_are_answered(
    swept: Callable[..., AbstractContextManager[int]],
) -> None:
    with swept(most_of_one_client=2, first_byte_seconds=3600) as port, ExitStack() as sockets:
        held = []
        for _ in range(6):
            held.append(sockets.enter_context(socket.socket()))
            held[-1].bind(("127.0.0.2", 0))
            held[-1].connect(("127.0.0.1", port))
            held[-1].sendall(b"GET")
        eventually(lambda: len(select(held, [], [], 0)[0]) == 4, "four connections are closed")
        assert is_live(port)


def test_connection_that_sends_nothing_is_closed_before_the_time_of_its_head(
    swept: Callable[..., AbstractContextManager[int]],
) -> None:
    with swept(most_of_one_client=2, first_byte_seconds=0) as port:
        assert received(port) == b""


@pytest.mark.ci
@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [
        (b"GET /health/live HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        (b"GET /health/live HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n", 400),
        (b"GET /health/live HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /health/live HTTP/1.0\r\n\r\n", 200),
        (b"GET /health/live HTTP/0.9\r\n\r\n", 400),
        (b"GET /health/live\r\n", 400),
    ],
    ids=["no Host", "two Hosts", "two Hosts in 1.0", "no Host in 1.0", "version 0.9", "request of 0.9"],
)
def test_host_and_version_are_checked(port: int, request_bytes: bytes, expected: int) -> None:
    assert status(received(port, request_bytes)) == expected


def test_aborted_upload_is_not_an_unexpected_error(port: int, caplog: pytest.LogCaptureFixture) -> None:
    lines = logging.getLogger("ledgermart.access")
    lines.addHandler(caplog.handler)
    head = b"POST /embed/data/cap-table/csv HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n"
    form = head + b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    try:
        with caplog.at_level(logging.INFO, "ledgermart.access"):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(form + b"t")
            eventually(lambda: any("POST" in line for line in caplog.messages), "the request is logged")
    finally:
        lines.removeHandler(caplog.handler)
    (line,) = {line for line in caplog.messages if "POST" in line}
    assert json.loads(line)["status"] == 400
    assert "unexpected" not in caplog.text


def test_address_of_the_client_is_in_log_and_audit(port: int, world: World, caplog: pytest.LogCaptureFixture) -> None:
    lines = logging.getLogger("ledgermart.access")
    lines.addHandler(caplog.handler)
    try:
        with (
            caplog.at_level(logging.INFO, "ledgermart.access"),
            httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=world.headers(), timeout=None) as client,
        ):
            # This test is the trusted proxy; the first address is forged by its client.
            forwarded = {"X-Forwarded-For": "198.51.100.1, 203.0.113.7"}
            for name, headers in (("one", forwarded), ("two", {})):
                answer = client.put("/v1/networks/ethereum/ledgers", json={"name": name}, headers=headers)
                assert answer.status_code == 201
            found = client.get("/v1/audit-events", params={"action": "ledger.create", "limit": 2}).json()["data"]
    finally:
        lines.removeHandler(caplog.handler)
    assert [event["clientAddress"] for event in found] == ["127.0.0.1", "203.0.113.7"]
    clients = [json.loads(line)["client"] for line in caplog.messages if '"PUT"' in line]
    assert set(clients) == {"127.0.0.1", "203.0.113.7"}


@pytest.mark.ci
def test_sigterm_exits_with_code_0_despite_open_connections(world: World) -> None:
    found = free_port()
    arguments = [str(world.settings.data_dir), str(world.settings.networks_file), str(found)]
    process = subprocess.Popen(tied_to_parent([sys.executable, "-c", _SERVE, *arguments]), stderr=subprocess.PIPE)
    assert process.stderr is not None
    log: list[bytes] = []
    reading = threading.Thread(target=lambda pipe: log.append(pipe.read()), args=[process.stderr])
    reading.start()
    try:
        eventually(lambda: is_live(found), "the API answers")
        with socket.create_connection(("127.0.0.1", found)) as connection:
            connection.sendall(_LIVE)
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
    finally:
        process.kill()
        process.wait()
        reading.join()
        process.stderr.close()
    assert [json.loads(line)["route"] for line in log[0].splitlines()].count("/health/live") >= 1
