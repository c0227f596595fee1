"""Settings of all tests: examples have no deadline, and costs are measured."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.shared import once, run_folder
from tests.unit.control.postgres import new_database, start_postgres, stop_postgres, unique_name

pytest_plugins = ["tests.costs"]

# An example may take as long as a busy machine needs.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server that all workers share; each database needs a unique name."""
    with once(run_folder(tmp_path_factory), "postgres", start_postgres, stop_postgres) as server:
        yield server["url"]


@pytest.fixture
def empty_database(postgres_server: str) -> Iterator[str]:
    """URL of an empty database for one test."""
    with new_database(postgres_server, unique_name()) as url:
        yield url


@pytest.fixture(autouse=True)
def signal_handlers() -> Iterator[None]:
    """Restore handlers replaced by a command in this process: child processes would inherit an ignored signal."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
