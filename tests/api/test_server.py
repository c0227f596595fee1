"""The server that `ledgermart api` starts, over a socket: a request's head is limited."""

import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.api.world import World
from tests.chain.process import free_port, stop_process, tied_to_parent
from tests.waiting import eventually

_SERVE = """
import sys
from api.server import serve
from control.settings import load_settings
serve(load_settings({"LEDGERMART_DATA_DIR": sys.argv[1], "LEDGERMART_NETWORKS": sys.argv[2]}), "127.0.0.1",
      int(sys.argv[3]))
"""
_HEADER_BYTES = 10_000_000


@pytest.fixture
def port(world: World) -> Iterator[int]:
    found = free_port()
    arguments = [str(world.settings.data_dir), str(world.settings.networks_file), str(found)]
    process = subprocess.Popen(tied_to_parent([sys.executable, "-c", _SERVE, *arguments]), stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _status(found) == 200, "the API answers")
        yield found
    finally:
        stop_process(process, grace_seconds=15)


def test_header_of_ten_megabytes_is_refused_and_others_are_answered(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        received = b""
        try:
            connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: a\r\nX-Large: ")
            connection.sendall(b"a" * _HEADER_BYTES + b"\r\n\r\n")
            received = connection.recv(1 << 16)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server closed while the header was on its way
        assert received.partition(b"\r\n")[0].split(b" ")[1:2] in ([], [b"400"], [b"431"])
    assert _status(port) == 200


def _status(port: int) -> int | None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request("GET", "/health/live")
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()
