"""Ports of the service, and a check before anything starts that they are free."""

import errno
import ipaddress
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
        host: the address to listen on.
        number: the port.
    """

    name: str
    variable: str
    host: str
    number: int


def ports_of(settings: Settings) -> list[Port]:
    """Return the ports that `ledgermart up` needs."""
    ports = [Port("API", "LEDGERMART_API_PORT", settings.api_host, settings.api_port)]
    if settings.dagster_pages:
        ports.append(Port("Dagster", "LEDGERMART_DAGSTER_PORT", "127.0.0.1", settings.dagster_port))
    return ports


def find_unusable(ports: Iterable[Port]) -> dict[Port, str]:
    """Return the ports that cannot be used, each with reason and fix; the second of two equal ports is one."""
    found = {}
    with ExitStack() as stack:
        for port in ports:
            try:
                family, kind, *_, address = socket.getaddrinfo(port.host, port.number, type=socket.SOCK_STREAM)[0]
                listener = stack.enter_context(socket.socket(family, kind))
                # Servers set it too, so that a port can be used right after its last user.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
                listener.listen()
            except socket.gaierror as error:
                found[port] = f"{port.host} is not an address of this machine ({error.strerror}); {_OTHER_HOST}"
            except OSError as error:
                fix = _FIXES.get(error.errno or 0, "set {variable} to another port").format(variable=port.variable)
                found[port] = f"{port.host}:{port.number} cannot be used ({error.strerror}); {fix}"
    return found


def find_exposure(settings: Settings, host: str) -> str | None:
    """Return reason and fix if other machines reach an address on which the API must not listen; None if it may."""
    if settings.api_public:
        return None
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror:
        return None  # the check of the port reports it
    if all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found):
        return None
    return (
        f"{host} can be reached by other machines. Set it to 127.0.0.1 behind a reverse proxy, or set "
        "LEDGERMART_API_PUBLIC=yes in a private network"
    )


def check_exposure(settings: Settings, host: str) -> None:
    """Check that other machines reach the API only if a setting allows it.

    Raises:
        SettingsError: other machines reach it, and the setting does not allow it.
    """
    reason = find_exposure(settings, host)
    if reason is not None:
        raise SettingsError(f"LEDGERMART_API_HOST or --host: {reason}")


def check_ports(ports: Collection[Port], patience_seconds: float = 0.0) -> None:
    """Check that the process can listen on all ports, now or after a short wait.

    Args:
        ports: all ports that are needed.
        patience_seconds: time to wait for ports to become free.

    Raises:
        SettingsError: a port is not free; the message names the first one, its variable and the fix.
    """
    gives_up_at = time.monotonic() + patience_seconds
    while (unusable := find_unusable(ports)) and time.monotonic() < gives_up_at:
        time.sleep(_POLL_SECONDS)
    for port, reason in unusable.items():
        raise SettingsError(f"{port.variable}: {reason}")
