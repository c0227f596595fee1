"""Late answers: the server decides which answers time out, independently of any clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from tests.chain import http_server
from warehouse.transport import Reply, Transport, TransportFault

# No standard has it; proxies log it where reading from the network timed out.
LATE = http_server.Reply(status=598)


@contextmanager
def late_answers_time_out() -> Iterator[None]:
    """Make every transport report a read timeout instead of an answer with the status `LATE`."""
    send = Transport.send

    def send_or_time_out(transport: Transport, *arguments: Any) -> Reply:
        reply = send(transport, *arguments)
        if reply.status == LATE.status:
            raise TransportFault("no complete answer in time", timed_out=True)
        return reply

    with mock.patch.object(Transport, "send", send_or_time_out):
        yield
