"""A cycle that gives facts to a lake in a separate process, killed after a number of the lake's statements."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from pipelines.chain import finality
from pipelines.lake import giving
from tests.integration.harness import Service
from tests.integration.killing import kill_this_process
from tests.integration.past import network
from warehouse.lakes import OpenLake


def give_until_killed(folder: Path, url: str, settings: Mapping[str, str], statements: int) -> None:
    """Run cycles of the service in the folder, in small parts; end as `kill -9` after the lake's statements."""
    service = Service(folder, [network(url)], dict(settings))
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
        service.good_cycle()
        service.good_cycle()
