"""Commands of a builder in a separate process, killed after a time."""

import threading
from datetime import timedelta
from unittest import mock

from pipelines.chain import finality
from tests.integration.killing import kill_this_process
from tests.integration.warm_processes import console_command


def cycle_until_killed(seconds: float | None, *arguments: str) -> None:
    """Run `ledgermart cycle`, where blocks settle at once; end as `kill -9` after the seconds, if any."""
    if seconds is not None:
        timer = threading.Timer(seconds, kill_this_process)
        timer.daemon = True
        timer.start()
    with mock.patch.object(finality, "SETTLED_AFTER", timedelta(0)):
        console_command("cycle", "--json", *arguments)
