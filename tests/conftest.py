"""Settings of all tests: examples have no deadline, and the longest files start first."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.shared import once, run_folder
from tests.unit.control.postgres import new_database, start_postgres, stop_postgres, unique_name

# An example may take as long as a busy machine needs.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Longest first: a long file that starts last would leave one processor idle.
LONGEST_FILES = [
    "integration/test_misfortunes.py",
    "e2e/test_demo.py",
    "integration/test_attestations.py",
    "integration/test_tenants.py",
    "integration/test_transform.py",
    "integration/test_values_transform.py",
    "integration/test_interleavings.py",
    "integration/test_holders.py",
    "integration/test_analysts_page.py",
    "integration/test_sandbox.py",
    "integration/test_history_from_files_page.py",
    "integration/test_concurrent_processes.py",
    "integration/test_cycle_command.py",
    "integration/test_wheel.py",
]


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the longest files to the front, in the same order in all processes."""
    order = {name: position for position, name in enumerate(LONGEST_FILES)}
    items.sort(key=lambda item: order.get("/".join(item.path.parts[-2:]), len(order)))
