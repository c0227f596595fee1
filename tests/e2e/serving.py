"""The API on a port of this machine, in a thread of this process."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import uvicorn

from api.app import create_app
from control.settings import Settings


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """Serve the application behind uvicorn, and give its address; the port of the settings does not count."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    app = create_app(replace(settings, api_port=port))
    server = uvicorn.Server(uvicorn.Config(app, http="h11", log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the API did not start"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
