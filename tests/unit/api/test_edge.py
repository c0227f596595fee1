"""Limits on a request before the application sees it, with a fake clock and without sockets."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_network
from typing import Any

import pytest

from api.errors import ApiError
from api.http.edge import Limits, limited

TRUSTED = (ip_network("127.0.0.1"), ip_network("10.0.0.0/8"))
NEVER = 3600.0


def scope(headers: Iterable[tuple[str, str]] = (), host: str = "127.0.0.1", version: str = "1.1") -> dict[str, Any]:
    named = [("host", "a"), *headers]
    return {
        "type": "http",
        "method": "POST",
        "path": "/",
        "http_version": version,
        "client": (host, "4711"),
        "headers": [(name.encode(), value.encode()) for name, value in named],
        "state": {},
    }


def run(
    app: Callable[..., Awaitable[None]],
    asked: dict[str, Any],
    messages: Iterable[dict[str, Any]] = (),
    limits: Limits | None = None,
    send: Callable[[Any], Awaitable[None]] | None = None,
) -> list[dict[str, Any]]:
    """Send messages to an application behind the limits, then stop; return its response."""
    left, sent = iter(messages), list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        found = next(left, None)
        return found if found is not None else await asyncio.get_running_loop().create_future()

    async def keep(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(limited(app, TRUSTED, limits or Limits(NEVER, NEVER, NEVER))(asked, receive, send or keep))  # type: ignore[arg-type]
    return sent


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.9", [], "192.0.2.9"),
        ("192.0.2.9", ["203.0.113.1"], "192.0.2.9"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["203.0.113.1"], "203.0.113.1"),
        ("::ffff:127.0.0.1", ["203.0.113.1"], "203.0.113.1"),
        # The first entry is forged by the client, the last one appended by the proxy.
        ("127.0.0.1", ["198.51.100.7, 203.0.113.1"], "203.0.113.1"),
        ("127.0.0.1", ["198.51.100.7", "203.0.113.1"], "203.0.113.1"),
        ("127.0.0.1", ["127.0.0.1, 203.0.113.1"], "203.0.113.1"),
        # Two proxies.
        ("127.0.0.1", ["203.0.113.1, 10.1.2.3"], "203.0.113.1"),
        ("127.0.0.1", ["10.9.9.9, 10.1.2.3"], "10.9.9.9"),
        ("127.0.0.1", ["203.0.113.1, unknown"], "127.0.0.1"),
        ("127.0.0.1", ["203.0.113.1, "], "127.0.0.1"),
        ("127.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("unix", ["203.0.113.1"], "unix"),
    ],
)
def test_client_is_the_last_address_that_is_no_trusted_proxy(peer: str, forwarded: list[str], client: str) -> None:
    asked = scope([("x-forwarded-for", value) for value in forwarded], peer)

    async def app(*_: Any) -> None:
        assert asked["client"][0] == client

    run(app, asked)


async def read_all(_: Any, receive: Any, __: Any) -> None:
    while (await receive())["more_body"]:
        pass


def piece(more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": b"a", "more_body": more}


def test_body_that_pauses_is_refused() -> None:
    with pytest.raises(ApiError) as found:
        run(read_all, scope(), [piece()], Limits(body_pause=0.01, body=NEVER))
    assert (found.value.status, found.value.code) == (408, "body-too-slow")
    assert found.value.headers == {"Connection": "close"}


def test_slow_body_is_refused_after_the_total_time() -> None:
    now, read = 0.0, 0

    def clock() -> float:
        return now

    async def drip(_: Any, receive: Any, __: Any) -> None:
        nonlocal now, read
        while True:
            now += 9
            await receive()
            read += 1

    with pytest.raises(ApiError) as found:
        run(drip, scope(), [piece()] * 100, Limits(body_pause=NEVER, body=60, clock=clock))
    assert found.value.status == 408
    assert read == 7  # 9 s to the first piece, then 54 s
    assert "within 60 s" in found.value.detail


def test_waiting_for_disconnect_has_no_limit() -> None:
    async def app(_: Any, receive: Any, __: Any) -> None:
        await receive()
        leaving = asyncio.ensure_future(receive())
        await asyncio.sleep(0.05)
        assert not leaving.done()
        leaving.cancel()

    run(app, scope(), [piece(more=False)], Limits(body_pause=0.01, body=0.01))


def test_incomplete_body_is_a_client_error() -> None:
    with pytest.raises(ApiError) as found:
        run(read_all, scope(), [piece(), {"type": "http.disconnect"}])
    assert (found.value.status, found.value.code) == (400, "incomplete-body")


def test_client_that_does_not_read_has_its_request_ended() -> None:
    ended = []

    async def stuck(_: Any) -> None:
        await asyncio.get_running_loop().create_future()

    async def app(_: Any, __: Any, send: Any) -> None:
        try:
            await send({"type": "http.response.body", "body": b"a", "more_body": True})
        finally:
            ended.append(True)

    run(app, scope(), (), Limits(answer_pause=0.01), stuck)
    assert ended == [True]


def test_slow_response_is_not_aborted() -> None:
    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start"})
        await asyncio.sleep(0.05)
        await send({"type": "http.response.body"})

    assert len(run(app, scope(), (), Limits(answer_pause=0.01))) == 2


def test_timeout_of_the_application_is_not_taken_for_the_clients() -> None:
    async def app(*_: Any) -> None:
        raise TimeoutError("a query")

    with pytest.raises(TimeoutError, match="a query"):
        run(app, scope())


@pytest.mark.parametrize(
    ("headers", "version", "is_refused"),
    [([], "1.1", False), ([("host", "b")], "1.1", True), ([("host", "b")], "1.0", True)],
)
def test_second_host_header_is_refused(headers: list[tuple[str, str]], version: str, is_refused: bool) -> None:
    async def app(*_: Any) -> None:
        return None

    sent = run(app, scope(headers, version=version))
    assert bool(sent) == is_refused
    if sent:
        assert sent[0]["status"] == 400
        assert dict(sent[0]["headers"])[b"content-type"] == b"application/problem+json"
        assert json.loads(sent[1]["body"])["code"] == "bad-host"
