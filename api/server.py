"""Serves the application with uvicorn in this process.

Which host and port, and what else runs beside it, is decided by the caller.
"""

import logging
import signal
from dataclasses import replace
from importlib import import_module

import uvicorn

from api.app import create_app
from control.settings import Settings

_SHUTDOWN_SECONDS = 10


def serve(settings: Settings, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT; requests under way get ten seconds to finish.

    The access log goes to standard error, one JSON object per line.
    """
    # DuckDB imports it at the first bound value: here, before the first request waits for it.
    import_module("pandas")
    access = logging.getLogger("ledgermart.access")
    if not access.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        access.addHandler(handler)
        access.propagate = False
    access.setLevel(logging.INFO)
    # uvicorn raises the signal again once it has stopped; a stop that was asked for is no failure of the process.
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: None)
    uvicorn.run(
        # Links to reports begin with the address that is listened on, unless another is configured.
        create_app(replace(settings, api_host=host, api_port=port)),
        host=host,
        port=port,
        # h11 refuses a request's head above 64 kB; httptools has no limit, and a large header blocks all requests.
        http="h11",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
