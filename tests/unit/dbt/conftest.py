"""A marts file without rows, as dbt makes it."""

from collections.abc import Iterator

import duckdb
import pytest

from pipelines.load.warehouse import open_warehouse
from tests.integration.dbt_runner import Stores, open_marts, run_dbt


@pytest.fixture(scope="session")
def marts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A marts file that dbt made, opened alone and read-only as a reader opens it."""
    stores = Stores(tmp_path_factory.mktemp("stores"))
    with open_warehouse(stores.warehouse):
        pass
    run_dbt(stores, "run", "--select", "stg_control__tenants")
    with open_marts(stores) as connection:
        yield connection
