"""Work of one machine in a separate process, killed after a time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from unittest import mock

from control.networks.in_force import networks_in_force
from control.settings import load_settings
from pipelines.chain import finality
from pipelines.history.bulk import collect_bulk
from pipelines.lake.tables import open_lake
from tests.integration.killing import kill_this_process
from tests.integration.warm_processes import console_command
from warehouse.lakes import LakeBusyError


def cycle_until_killed(seconds: float | None, *arguments: str) -> None:
    """Run `ledgermart cycle`."""
    with _killed_after(seconds):
        console_command("cycle", "--json", *arguments)


def collect_past_until_killed(seconds: float | None) -> None:
    """Run the bulk history of the network `local`, unless another machine does."""
    settings = load_settings()
    network = networks_in_force(settings)["local"]
    lake = open_lake(settings, network)
    assert lake is not None
    with _killed_after(seconds), suppress(LakeBusyError):
        collect_bulk(settings, network, lake, print)


@contextmanager
def _killed_after(seconds: float | None) -> Iterator[None]:
    """Let blocks settle at once; end as `kill -9` after the seconds, if any."""
    if seconds is not None:
        timer = threading.Timer(seconds, kill_this_process)
        timer.daemon = True
        timer.start()
    with mock.patch.object(finality, "SETTLED_AFTER", timedelta(0)):
        yield
