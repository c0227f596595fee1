"""The API on a port of this machine, in a thread of this process."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_network

from litestar import Litestar

from api.app import create_app
from api.http.connections import ConnectionSweeper
from api.server import HEAD_SECONDS, MOST_OF_ONE_CLIENT, serve_until
from control.settings import Settings
from tests.chain.process import free_port
from tests.waiting import eventually


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """Serve the API as `ledgermart api` does, and give its address; the port of the settings does not count."""
    port = free_port()
    with serving_app(create_app(replace(settings, api_port=port)), port):
        yield f"http://127.0.0.1:{port}"


def trusting(port: int) -> ConnectionSweeper:
    return ConnectionSweeper(port, [ip_network("127.0.0.0/8")], MOST_OF_ONE_CLIENT, HEAD_SECONDS)


@contextmanager
def serving_app(
    app: Litestar, port: int, head_seconds: float = HEAD_SECONDS, sweeper: ConnectionSweeper | None = None
) -> Iterator[None]:
    """Serve an application on a port; by default all clients are trusted."""
    stopped = threading.Event()
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        stopping = asyncio.Event()
        begun.append((asyncio.get_running_loop(), stopping))
        await serve_until(stopping, app, "127.0.0.1", port, sweeper or trusting(port), head_seconds)

    def run() -> None:
        try:
            asyncio.run(serve())
        finally:
            stopped.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    eventually(lambda: stopped.is_set() or _listens(port), "the API listens")
    assert not stopped.is_set(), "the API did not start"
    try:
        yield
    finally:
        loop, stopping = begun[0]
        loop.call_soon_threadsafe(stopping.set)
        thread.join()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
