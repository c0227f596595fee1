"""HTTP server: runs the application with granian in this process.

The caller chooses host and port.
"""

import asyncio
import logging
import signal
from dataclasses import replace
from importlib import import_module
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server
from litestar import Litestar
from litestar.types import Receive, Scope, Send

from api.app import create_app
from api.http.connections import ConnectionSweeper
from control.settings import Settings

MOST_CONNECTIONS = 512
"""Largest number of open connections, below the usual limit of 1,024 open files. Further connections wait."""
MOST_OF_ONE_CLIENT = MOST_CONNECTIONS // 8
"""Largest number of open connections of one client that is no trusted proxy. Further ones are closed."""
FIRST_BYTE_SECONDS = 3
"""Longest time until the first byte of a connection."""
MOST_HEAD_BYTES = 64 * 1024
"""Largest size of a request's head; the server reads up to twice as much before it refuses the request."""
HEAD_SECONDS = 13
"""Longest time for a request's head, and longest idle time of a connection.

It avoids common polling intervals such as 10 or 15 s. With those, clients would often send a request just as the server
closes the idle connection.
"""
_SWEEP_SECONDS = 0.25
_SHUTDOWN_SECONDS = 10
_CLOSE_SECONDS = 2


def serve(settings: Settings, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT; open requests get ten seconds to finish.

    The access log goes to standard error, one JSON object per line.
    """
    # DuckDB imports pandas at the first bound value. Import it now, so that the first request does not wait for it.
    import_module("pandas")
    access = logging.getLogger("ledgermart.access")
    if not access.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        access.addHandler(handler)
        access.propagate = False
    access.setLevel(logging.INFO)

    sweeper = ConnectionSweeper(port, settings.trusted_proxies, MOST_OF_ONE_CLIENT, FIRST_BYTE_SECONDS)

    async def run() -> None:
        stopping = asyncio.Event()
        for stop in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(stop, stopping.set)
        # By default, links to reports begin with the address that the server listens on.
        app = create_app(replace(settings, api_host=host, api_port=port))
        await serve_until(stopping, app, host, port, sweeper)

    asyncio.run(run())


async def serve_until(
    stopping: asyncio.Event,
    app: Litestar,
    host: str,
    port: int,
    sweeper: ConnectionSweeper,
    head_seconds: float = HEAD_SECONDS,
) -> None:
    """Serve an application in the running event loop until an event is set.

    Args:
        stopping: event that stops the server; open requests get ten seconds to finish.
        app: the application.
        host: name or address to listen on.
        port: port to listen on.
        sweeper: ends connections of the port.
        head_seconds: longest time for a request's head; see `HEAD_SECONDS`.

    Raises:
        OSError: the process cannot listen on the address.
        RuntimeError: the server ended before it was stopped.
    """
    running: set[asyncio.Task[Any]] = set()

    async def tracked(scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("the server runs each request as a task")
        running.add(task)
        try:
            await app(scope, receive, send)
        finally:
            running.discard(task)

    *_, address = (await asyncio.get_running_loop().getaddrinfo(host, port))[0]
    async with app.lifespan():
        server = Server(
            tracked,
            address=address[0],
            port=port,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backpressure=MOST_CONNECTIONS,
            http1_settings=HTTP1Settings(
                header_read_timeout=round(head_seconds * 1000), max_buffer_size=MOST_HEAD_BYTES
            ),
            log_level=LogLevels.error,
        )
        serving = asyncio.create_task(server.serve())
        stopped = asyncio.create_task(stopping.wait())
        sweeping = asyncio.create_task(_sweep(sweeper))
        await asyncio.wait({serving, stopped, sweeping}, return_when=asyncio.FIRST_COMPLETED)
        for task in (serving, sweeping):
            if task.done():
                stopped.cancel()
                task.result()
                raise RuntimeError("the HTTP server ended by itself")
        sweeping.cancel()
        server.stop()  # type: ignore[no-untyped-call]
        await asyncio.wait({serving}, timeout=_SHUTDOWN_SECONDS)
        for task in running:
            task.cancel()
        # A client that reads nothing keeps its connection open, so the server may not end. Stop waiting for it.
        await asyncio.wait({serving}, timeout=_CLOSE_SECONDS)
        serving.cancel()


async def _sweep(sweeper: ConnectionSweeper) -> None:
    while True:
        sweeper.sweep()
        await asyncio.sleep(_SWEEP_SECONDS)
