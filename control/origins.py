"""Origins: scheme, host and port of a web site, as texts that may go into a header or a link.

Which origins a tenant allows is `control.embedding`.
"""

import ipaddress
import re

_ORIGIN = re.compile(r"(https?)://([A-Za-z0-9.-]{1,253})(?::([1-9][0-9]{0,4}))?", re.IGNORECASE | re.ASCII)
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_DEFAULT_PORTS = {"http": 80, "https": 443}

_WRITTEN_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_END = "(?:$|:)"
_HOST = (
    rf"(?:{_BYTE}(?:\.{_BYTE}){{3}}|(?:{_WRITTEN_LABEL}\.)*(?![0-9]+{_END}|0[xX][0-9a-fA-F]*{_END}){_WRITTEN_LABEL})"
)
_PORT = "(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
PATTERN = rf"^[Hh][Tt][Tt][Pp][Ss]?://(?=[^:]{{1,253}}{_END}){_HOST}(?::{_PORT})?$"
"""Pattern (JSON Schema) of the texts that `read_origin` takes."""

FORM = "scheme, host and, unless it is the default, port, such as https://portal.example or http://10.0.0.5:8443"
"""Forms that `read_origin` accepts, for people."""


def read_origin(text: str) -> str:
    """Return an origin in the form in which browsers compare it: lower case, without the scheme's usual port.

    The host is a name or an IPv4 address. Content-Security-Policy has no form for IPv6 addresses, and names with other
    letters than ASCII's are written as browsers send them, `xn--...`.

    Raises:
        ValueError: it is none; the message says why.
    """
    if not text.isascii():
        raise ValueError("it has a character beyond ASCII; write the host as browsers send it, xn--...")
    found = _ORIGIN.fullmatch(text)
    if found is None:
        raise ValueError(f"it is not an origin; write {FORM}, without path, wildcard or user")
    scheme, host, port = found[1].lower(), found[2].lower(), int(found[3] or 0)
    labels = host.split(".")
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{host!r} is not the name of a host")
    # What ends in a number is an address to a browser, which reads 127.1 as 127.0.0.1.
    if labels[-1].isdigit() or re.fullmatch(r"0x[0-9a-f]*", labels[-1]):
        try:
            ipaddress.IPv4Address(host)
        except ValueError as error:
            raise ValueError(f"{host!r} is not an IPv4 address; write four numbers from 0 to 255") from error
    if port > 65_535:
        raise ValueError(f"{port} is not a port; write 1 to 65535")
    return f"{scheme}://{host}" + (f":{port}" if port and port != _DEFAULT_PORTS[scheme] else "")
