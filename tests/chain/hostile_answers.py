"""Answers of a hostile node: some never end, others are small on the wire and large when decoded.

Each function takes a request's calls and returns a reply for a scripted node or a fault proxy.
"""

import gzip
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias

from tests.chain.http_server import Reply
from tests.chain.scripted_node import transfer_log

Calls: TypeAlias = Sequence[dict[str, Any]]
Answer: TypeAlias = Callable[[Calls], Reply]

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
# Each piece restarts a reader's time-out, so a client that waits for the end waits for ever.
_PAUSE_SECONDS = 0.01


def _endless(start: bytes, piece: bytes) -> Answer:
    def stream() -> Iterator[bytes]:
        yield start
        while True:
            time.sleep(_PAUSE_SECONDS)
            yield piece

    return lambda _: Reply(stream=stream)


NEVER_ENDING: dict[str, Answer] = {
    "drip_header": _endless(_HEAD + b"X-Drip: ", b"a"),
    "drip_status": _endless(b"HTTP/1.1 200 ", b"O"),
    "continue_flood": _endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 10),
    "continue_headers": _endless(b"", b"HTTP/1.1 100 Continue\r\n" + b"X-Flood: a\r\n" * 50 + b"\r\n"),
    "drip_body": _endless(_HEAD + b"Content-Length: 1000000\r\n\r\n", b" "),
    "drip_without_length": _endless(_HEAD + b"Connection: close\r\n\r\n", b" "),
    "drip_chunks": _endless(_CHUNKED, b"1\r\n \r\n"),
    "drip_chunk_extension": _endless(_CHUNKED + b"1;", b"a"),
    "trailers": _endless(_CHUNKED + b"2\r\n{}\r\n0\r\n", b"X-Trailer: a\r\n"),
    "gzip_header": _endless(_HEAD + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08\0\0\0\0\0\0", b"a"),
    "silent": _endless(b"", b""),
}
"""Exchanges that never end."""


@cache
def _zipped(start: bytes, piece: bytes, end: bytes, size: int) -> Reply:
    body = start + piece * ((size - len(start) - len(end)) // len(piece)) + end
    return Reply(gzip.compress(body, 1), headers={"Content-Encoding": "gzip"})


def _bomb(start: bytes, piece: bytes, end: bytes) -> Callable[[int], Answer]:
    """Answers that repeat the piece, of a size in bytes."""

    def of(size: int) -> Answer:
        def answer(calls: Calls) -> Reply:
            # One bomb is enough for a batch; its other answers are missing.
            filled = start.replace(b"ID", str(calls[0]["id"]).encode())
            is_batch = len(calls) > 1
            return _zipped(b"[" + filled if is_batch else filled, piece, end + b"]" if is_batch else end, size)

        return answer

    return of


_LOG = json.dumps(transfer_log(1, 1, 1)).encode()
_BEFORE_TOPICS, _AFTER_TOPICS = _LOG[: _LOG.index(b'"topics": [') + 11], b'""' + _LOG[_LOG.index(b'], "data"') :]

BOMBS: dict[str, Callable[[int], Answer]] = {
    "result": _bomb(b'{"jsonrpc":"2.0","id":ID,"result":[', b"[],", b"[]]}"),
    "error": _bomb(b'{"jsonrpc":"2.0","id":ID,"error":[', b"[],", b"[]]}"),
    "message": _bomb(b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":[', b"[],", b"[]]}}"),
    "words": _bomb(b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"', "\U0001f4a3".encode(), b'"}}'),
    "code": _bomb(b'{"jsonrpc":"2.0","id":ID,"error":{"message":"no","code":', b"9", b"9}}"),
    "data": _bomb(b'{"jsonrpc":"2.0","id":ID,"error":{"code":3,"message":"no","data":[', b"{},", b"{}]}}"),
    "id": _bomb(b'{"jsonrpc":"2.0","result":"0x1","id":[', b"[],", b"[]]}"),
    "number": _bomb(b'{"jsonrpc":"2.0","result":"0x1","id":', b"9", b"9}"),
    "more": _bomb(b'{"jsonrpc":"2.0","id":ID,"result":"0x1","more":[', b"[],", b"[]]}"),
    "batch": _bomb(b"[", b"{},", b"{}]"),
    "list": _bomb(b"[", b"[],", b"[]]"),
    "topics": _bomb(b'{"jsonrpc":"2.0","id":ID,"result":[' + _BEFORE_TOPICS, b'"ab",', _AFTER_TOPICS + b"]}"),
    "deep": _bomb(b'{"jsonrpc":"2.0","id":ID,"result":', b"[", b"}"),
    "deep_error": _bomb(b'{"jsonrpc":"2.0","id":ID,"error":', b"[", b"}"),
}
"""Answers that compress to a thousandth, by what holds the load; the argument is their size in bytes, unpacked."""


def endless_hint(_: Calls) -> Reply:
    """An error that proposes a range of 5,000 digits."""
    digits = "9" * 5_000
    error = {"code": -32602, "message": f"query exceeds max results, retry with the range {digits}-{digits}"}
    return Reply(json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode())


def slow(seconds: float) -> Answer:
    """Wait before each reply, which is a 503."""
    return lambda _: Reply(status=503, delay_seconds=seconds)
