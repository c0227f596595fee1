"""Facts given to a lake in a separate process, which is killed after a number of the lake's statements."""

import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from pipelines.chain import finality
from pipelines.history import bulk
from pipelines.history.bulk import collect_bulk
from pipelines.lake import giving
from pipelines.lake.tables import open_lake
from tests.integration.harness import Service
from tests.integration.killing import kill_this_process
from tests.integration.past import network
from tests.integration.warm_processes import run_forked
from warehouse.lakes import OpenLake


def killed_often(run: Callable[..., None], arguments: Sequence[Any], times: int, most: int) -> Iterator[None]:
    """Run a function of this module several times in a separate process, and yield after each.

    Args:
        run: gives facts; its last argument is the number of statements after which it is killed.
        arguments: the other ones.
        times: number of runs, most of which are killed.
        most: largest number of statements; reduced to that of a run that ended by itself.
    """
    chance, ends = random.Random(times), []
    for _ in range(times):
        statements = chance.randrange(1, most)
        done = run_forked(run, (*arguments, statements), dict(os.environ))
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        ends.append(done.returncode)
        if done.returncode == 0:
            most = max(statements, 2)
        yield
    assert -signal.SIGKILL in ends


@contextmanager
def _killed_after(statements: int) -> Iterator[None]:
    """Give facts in small parts; end as `kill -9` after a number of the lake's statements."""
    run, left = OpenLake.run, statements

    def counted(opened: OpenLake, *arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            kill_this_process()
        return run(opened, *arguments)

    with (
        mock.patch.object(finality, "SETTLED_AFTER", timedelta(0)),
        mock.patch.object(giving, "MOST_ROWS", 20),
        mock.patch.object(OpenLake, "run", counted),
    ):
        yield


def give_until_killed(folder: Path, url: str, settings: Mapping[str, str], statements: int) -> None:
    """Run cycles of the service in the folder."""
    service = Service(folder, [network(url)], dict(settings))
    with _killed_after(statements):
        service.good_cycle()
        service.good_cycle()


def collect_bulk_until_killed(folder: Path, url: str, settings: Mapping[str, str], statements: int) -> None:
    """Run the bulk history of the service in the folder, in short slices."""
    service = Service(folder, [network(url, max_log_range=5)], dict(settings))
    lake = open_lake(service.settings, service.networks["local"])
    assert lake is not None
    with _killed_after(statements), mock.patch.object(bulk, "SLICE_SECONDS", 1.0):
        collect_bulk(service.settings, service.networks["local"], lake, print)
