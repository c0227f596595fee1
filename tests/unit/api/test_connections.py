"""Shares of connections and the time of the first byte, with real sockets and without a clock."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from ipaddress import ip_network

import pytest

from api.http.connections import ConnectionSweeper, client_of

_NEVER = 3600
_TRUSTED = [ip_network("127.0.0.1"), ip_network("10.0.0.0/8")]
_OPEN_STATES = (1, 8)  # ESTABLISHED and CLOSE_WAIT, in linux/tcp.h
Connect = Callable[..., socket.socket]


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """A listening socket."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield listening


@pytest.fixture
def connect(server: socket.socket) -> Iterator[Connect]:
    """Connect from an address, and return the accepted socket after the sent bytes arrived."""
    with ExitStack() as sockets:

        def connected(source: str = "127.0.0.2", sent: bytes = b"", *, ends: bool = False) -> socket.socket:
            client = sockets.enter_context(closing(socket.socket()))
            client.bind((source, 0))
            client.connect(server.getsockname())
            accepted = sockets.enter_context(closing(server.accept()[0]))
            if sent:
                client.sendall(sent)
                assert accepted.recv(len(sent))
            if ends:
                client.shutdown(socket.SHUT_WR)
                assert not accepted.recv(1)
            return accepted

        yield connected


def sweeper(server: socket.socket, most: int = 2, first_byte_seconds: float = _NEVER) -> ConnectionSweeper:
    return ConnectionSweeper(server.getsockname()[1], _TRUSTED, most, first_byte_seconds)


def are_open(*accepted: socket.socket) -> list[bool]:
    """Return of each connection whether the server has not ended it."""
    return [one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _OPEN_STATES for one in accepted]


def test_newest_connections_of_one_client_are_ended(server: socket.socket, connect: Connect) -> None:
    sweeping = sweeper(server)
    first = [connect(), connect()]
    sweeping.sweep()
    later = [connect(sent=b"GET"), connect(), connect("127.0.0.3")]
    sweeping.sweep()
    assert are_open(*first, *later) == [True, True, False, False, True]
    first[0].close()
    next_one = connect()
    sweeping.sweep()
    assert are_open(first[1], next_one) == [True, True]


def test_connections_that_sent_something_come_first(server: socket.socket, connect: Connect) -> None:
    accepted = [connect(sent=sent) for sent in (b"", b"", b"G", b"G")]
    sweeper(server).sweep()
    assert are_open(*accepted) == [False, False, True, True]


def test_trusted_proxy_has_no_share(server: socket.socket, connect: Connect) -> None:
    accepted = [connect("127.0.0.1") for _ in range(5)]
    sweeper(server).sweep()
    assert all(are_open(*accepted))


@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2"])
def test_connection_without_a_first_byte_is_ended(server: socket.socket, connect: Connect, source: str) -> None:
    accepted = [connect(source), connect(source, b"G")]
    sweeper(server).sweep()
    assert are_open(*accepted) == [True, True]
    sweeper(server, first_byte_seconds=0).sweep()
    assert are_open(*accepted) == [False, True]


def test_silent_connections_do_not_count_in_the_share(server: socket.socket, connect: Connect) -> None:
    sweeping = sweeper(server, first_byte_seconds=0)
    accepted = [connect(sent=sent) for sent in (b"G", b"", b"", b"G")]
    sweeping.sweep()
    assert are_open(*accepted) == [True, False, False, True]


def test_client_that_ended_its_side_still_counts(server: socket.socket, connect: Connect) -> None:
    sweeping = sweeper(server)
    accepted = [connect(sent=b"G", ends=True) for _ in range(2)]
    sweeping.sweep()
    later = connect(sent=b"G")
    sweeping.sweep()
    assert are_open(*accepted, later) == [True, True, False]


def test_other_sockets_of_the_process_stay_open(server: socket.socket, connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, socket.socket() as client:
        client.bind(("127.0.0.2", 0))
        client.connect(other.getsockname())
        left, right = socket.socketpair()
        with other.accept()[0] as accepted, left, right:
            sweeper(server, most=0, first_byte_seconds=0).sweep()
            assert are_open(client, accepted) == [True, True]
            left.sendall(b"G")
            assert right.recv(1) == b"G"
    connect()  # the server still listens


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::2:3", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:127.0.0.1", "10.1.2.3", True),  # both are trusted
    ],
)
def test_ipv4_address_or_ipv6_network_is_one_client(one: str, other: str, is_same: bool) -> None:
    assert (client_of(one, _TRUSTED) == client_of(other, _TRUSTED)) == is_same
