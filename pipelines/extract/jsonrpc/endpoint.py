"""One URL of a provider: posts a body, reads a bounded answer, and does not parse it.

A URL may hold a key, in its path, query or user part. It leaves this module only towards the provider.
Errors name the URL by its position in the network's definition, because tenants read them.
"""

from collections.abc import Callable, Iterable
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import urllib3

from pipelines.extract.pacing import Pacer
from warehouse.transport import Reply, Transport

_SHORTEST_SECRET = 6


class Endpoint:
    """One URL with its connections and its pace; thread-safe.

    Args:
        url: http or https, including any keys of the provider.
        name: its name in errors.
        timeout: seconds to connect, and to wait for the next bytes.
        connections: kept alive at most.
    """

    def __init__(
        self,
        url: str,
        name: str,
        timeout: tuple[float, float],
        connections: int,
        sleep: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        parts, self.label = _parse(url)
        self.name = name
        self._url = f"{parts.scheme}://{self.label}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": "ledgermart",
            **urllib3.util.make_headers(accept_encoding="gzip"),
        }
        secrets = [parts.query, *parts.path.split("/"), *(value for _, value in parse_qsl(parts.query))]
        secrets += [field.partition("=")[2] for field in parts.query.split("&")]
        if parts.username is not None:
            user, password = unquote(parts.username), unquote(parts.password or "")
            basic = urllib3.util.make_headers(basic_auth=f"{user}:{password}")
            self._headers |= basic
            secrets += [user, password, parts.username, parts.password or "", basic["authorization"].split()[-1]]
        self._secrets = sorted({secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True)
        self._transport = Transport(timeout, connections, clock)
        self.pacer = Pacer(sleep, clock)
        self.is_chain_checked = False

    def redact(self, text: str) -> str:
        """Return the text for the log: without parts of the URL that may be keys, and without control characters."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return "".join(character if character.isprintable() else " " for character in text)

    def post(self, body: bytes, deadline: float, max_bytes: int, patience: float | None = None) -> Reply:
        """Send a JSON body and read the answer.

        Args:
            deadline: on the clock given at construction; the answer is complete by then or given up.
            max_bytes: of the answer, decompressed.
            patience: seconds to wait for the next bytes; replaces the one given at construction.

        Raises:
            TransportFault: no connection, a time-out, or an answer cut off.
            AnswerTooLarge: more than max_bytes.
        """
        return self._transport.send("POST", self._url, self._headers, body, deadline, max_bytes, patience)

    def close(self) -> None:
        """Close the kept connections."""
        self._transport.close()


def other_urls(urls: Iterable[str], provider: str) -> list[str]:
    """Return the URLs that do not lead to the provider, in their order: they can give a second opinion.

    Args:
        provider: as `RpcClient.provider` names it. The same host and port with another key is the same provider.
    """
    return [url for url in urls if _parse(url)[1] != provider]


def _parse(url: str) -> tuple[SplitResult, str]:
    """Return the parts of a URL, and its host, with the port where it names one."""
    # Messages omit the URL, and causes are cut: both would show the key.
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("an RPC URL cannot be parsed") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an RPC URL must begin with http:// or https:// and name a host")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return parts, host if port is None else f"{host}:{port}"
