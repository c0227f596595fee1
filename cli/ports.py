"""The ports of the service: whether they can be listened on, asked before anything starts."""

import errno
import socket
import time
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass

from control.settings import Settings, SettingsError

# Children of a killed `up` stop in about 3 s.
PATIENCE_SECONDS = 5.0
_POLL_SECONDS = 0.1
_OTHER_HOST = "set LEDGERMART_API_HOST to one, such as 127.0.0.1"
_FIXES = {
    errno.EADDRINUSE: "stop the process that listens there, or set {variable} to a free port",
    errno.EADDRNOTAVAIL: _OTHER_HOST,
    errno.EACCES: "set {variable} to a port from 1024 on",
}


@dataclass(frozen=True)
class Port:
    """A port that a process of the service listens on.

    Attributes:
        name: the process.
        variable: the setting or option that names the port.
        host: the address that is listened on.
        number: the port.
    """

    name: str
    variable: str
    host: str
    number: int


def ports_of(settings: Settings) -> list[Port]:
    """Return the ports that `ledgermart up` needs."""
    return [
        Port("API", "LEDGERMART_API_PORT", settings.api_host, settings.api_port),
        Port("Dagster", "LEDGERMART_DAGSTER_PORT", "127.0.0.1", settings.dagster_port),
        Port("code server", "LEDGERMART_CODE_SERVER_PORT", "127.0.0.1", settings.code_server_port),
    ]


def find_unusable(ports: Iterable[Port]) -> dict[Port, str]:
    """Return the ports that cannot be listened on, each with the reason and the fix; two alike are one too many."""
    found = {}
    with ExitStack() as stack:
        for port in ports:
            try:
                family, kind, *_, address = socket.getaddrinfo(port.host, port.number, type=socket.SOCK_STREAM)[0]
                listener = stack.enter_context(socket.socket(family, kind))
                # As servers do; a port that was left a moment ago can be listened on.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
                listener.listen()
            except socket.gaierror as error:
                found[port] = f"{port.host} is no address of this machine ({error.strerror}); {_OTHER_HOST}"
            except OSError as error:
                fix = _FIXES.get(error.errno or 0, "set {variable} to another port").format(variable=port.variable)
                found[port] = f"{port.host}:{port.number} cannot be used ({error.strerror}); {fix}"
    return found


def check_ports(ports: Collection[Port], patience_seconds: float = 0.0) -> None:
    """Do nothing where all ports can be listened on, or soon can.

    Args:
        ports: are needed together.
        patience_seconds: how long a port may still be taken.

    Raises:
        SettingsError: names the first one that cannot, its variable, and the fix.
    """
    gives_up_at = time.monotonic() + patience_seconds
    while (unusable := find_unusable(ports)) and time.monotonic() < gives_up_at:
        time.sleep(_POLL_SECONDS)
    for port, reason in unusable.items():
        raise SettingsError(f"{port.variable}: {reason}")
