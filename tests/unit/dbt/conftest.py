"""A marts file without rows, created by dbt."""

from collections.abc import Iterator

import duckdb
import pytest

from tests.integration.dbt_runner import build_over_nothing, open_marts


@pytest.fixture(scope="session")
def marts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A marts file created by dbt, opened read-only like a reader's."""
    with open_marts(build_over_nothing(tmp_path_factory.mktemp("stores"))) as connection:
        yield connection
