"""Limits on the connections of one client: a share of all connections, and a time for the first byte.

granian accepts connections by itself, and has neither limit. So the sweeper reads the state of this process's own
sockets, and shuts connections down. granian notices that as it notices a client that leaves.
"""

import errno
import os
import socket
import stat
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from api.http.edge import ip_address_of
from control.settings import IpNetwork

# Fields of `struct tcp_info` in linux/tcp.h: state, milliseconds since the last data, received bytes.
_TCP_INFO = struct.Struct("=B51xI72xQ")
_ESTABLISHED, _CLOSE_WAIT = 1, 8
_IPV6_PREFIX_BYTES = 8


@dataclass(frozen=True)
class _Connection:
    """An open connection of the server; without a client if it comes from a trusted proxy."""

    descriptor: int
    inode: int
    client: bytes | None
    idle_ms: int
    has_sent: bool


class ConnectionSweeper:
    """Ends connections of the server in this process; call `sweep` a few times each second.

    Args:
        port: port of the server.
        trusted_proxies: networks of reverse proxies; one of them connects for many clients, so it has no share.
        most_of_one_client: largest number of connections of one IPv4 address, or of one IPv6 network of 64 bits.
        first_byte_seconds: longest time until the first byte arrives.
    """

    def __init__(
        self, port: int, trusted_proxies: Sequence[IpNetwork], most_of_one_client: int, first_byte_seconds: float
    ) -> None:
        self._port = port
        self._trusted = trusted_proxies
        self._most_of_one_client = most_of_one_client
        self._first_byte_ms = first_byte_seconds * 1000
        self._known: list[int] = []

    def sweep(self) -> None:
        """End connections that sent nothing in time, and the newest ones of each client that has too many."""
        found = {connection.inode: connection for connection in self._connections()}
        known = [inode for inode in self._known if inode in found]
        self._known = known + sorted(found.keys() - known, key=lambda inode: not found[inode].has_sent)
        counts = Counter[bytes]()
        for connection in map(found.__getitem__, self._known):
            if not connection.has_sent and connection.idle_ms >= self._first_byte_ms:
                _end(connection)
            elif connection.client is not None:
                counts[connection.client] += 1
                if counts[connection.client] > self._most_of_one_client:
                    _end(connection)

    def _connections(self) -> Iterator[_Connection]:
        try:
            descriptors = [int(path.name) for path in Path("/proc/self/fd").iterdir()]
        except OSError as error:
            if error.errno == errno.EMFILE:  # the next sweep tries again
                return
            raise
        for descriptor in descriptors:
            with suppress(OSError):  # closed meanwhile
                inode = _socket_inode(descriptor)
                if inode is not None and (found := self._connection(descriptor, inode)) is not None:
                    yield found

    def _connection(self, descriptor: int, inode: int) -> _Connection | None:
        """Return an open connection to the server's port; None for any other socket."""
        with _borrowed(descriptor) as connection:
            if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
                return None
            if connection.getsockname()[1] != self._port:
                return None
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
            state, idle_ms, received = _TCP_INFO.unpack(info)
            if state not in (_ESTABLISHED, _CLOSE_WAIT):
                return None
            client = client_of(connection.getpeername()[0], self._trusted)
        return _Connection(descriptor, inode, client, idle_ms, received > 0)


def client_of(peer: str, trusted_proxies: Sequence[IpNetwork]) -> bytes | None:
    """Return the identity of a client: an IPv4 address, or 64 bits of an IPv6 address; None for a trusted proxy."""
    address = ip_address_of(peer)
    if address is None or any(address in network for network in trusted_proxies):
        return None
    return address.packed if address.version == 4 else address.packed[:_IPV6_PREFIX_BYTES]


def _socket_inode(descriptor: int) -> int | None:
    found = os.fstat(descriptor)
    return found.st_ino if stat.S_ISSOCK(found.st_mode) else None


@contextmanager
def _borrowed(descriptor: int) -> Iterator[socket.socket]:
    """Use a descriptor that granian owns.

    A duplicate would be worse: if the number meant a database by then, closing the duplicate would free its locks.
    """
    connection = socket.socket(fileno=descriptor)
    try:
        yield connection
    finally:
        connection.detach()


def _end(connection: _Connection) -> None:
    with suppress(OSError):  # closed meanwhile
        if _socket_inode(connection.descriptor) == connection.inode:
            with _borrowed(connection.descriptor) as found:
                found.shutdown(socket.SHUT_RDWR)
