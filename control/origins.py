"""Origins: scheme, host and port of a web site, as texts that may go into a header or a link.

Which origins a tenant allows is `control.embedding`.
"""

import ipaddress
import re

_ORIGIN = re.compile(r"(https?)://([A-Za-z0-9.-]{1,253})(?::([1-9][0-9]{0,4}))?", re.IGNORECASE | re.ASCII)
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_DEFAULT_PORTS = {"http": 80, "https": 443}

PATTERN = r"^[Hh][Tt][Tt][Pp][Ss]?://[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(?::[1-9][0-9]{0,4})?$"
"""Pattern (JSON Schema) of the texts that may be an origin; not all of them are."""

FORM = "scheme, host and, unless it is the default, port, such as https://portal.example or http://10.0.0.5:8443"
"""What `read_origin` accepts, for people."""


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
