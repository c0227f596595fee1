"""A marts file without rows, as dbt makes it."""

from collections.abc import Iterator

import duckdb
import pytest

from tests.integration.dbt_runner import build_over_nothing, open_marts


@pytest.fixture(scope="session")
def marts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A marts file that dbt made, opened alone and read-only as a reader opens it."""
    with open_marts(build_over_nothing(tmp_path_factory.mktemp("stores"))) as connection:
        yield connection
