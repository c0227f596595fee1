"""A cycle and history over data sets in a separate process, killed after a number of statements."""

from pathlib import Path
from unittest import mock

from control.networks.data_sets import DataSet
from tests.integration.harness import LocalNetwork, Service
from tests.integration.killing import ending_after, kill_this_process


def read_until_killed(folder: Path, url: str, data_set: DataSet, statements: int) -> None:
    """Continue the history of the service in the folder, in small parts; end as `kill -9` after the statements."""
    service = Service(folder, [LocalNetwork("local", url, data_sets=[data_set])])
    with (
        mock.patch("pipelines.data_sets.staged.ROWS_PER_PART", 7),
        ending_after(statements, kill_this_process, "tests.integration.harness"),
    ):
        service.history()
