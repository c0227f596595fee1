"""The run's lock on the warehouse, as a Dagster resource."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import duckdb

from control.settings import Settings, load_settings
from pipelines.defs.runs import NEW_WAREHOUSE_TAG, has_tag
from pipelines.raw.database import create_tables
from pipelines.raw.lost import find_lost
from warehouse import port


class Warehouse(dg.ConfigurableResource["Warehouse"]):
    """Writer lock, held from the first step of a run to its last, and connections under it.

    A step opens its own connection and closes it, because dbt, which is another process, must be able to open the file.
    """

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["Warehouse"]:
        """Hold the lock for the run.

        Raises:
            WriterBusyError: another writer held it for longer than LEDGERMART_LOCK_WAIT_SECONDS.
            DamagedFileError: the warehouse is lost with data that the next cycles would not collect again.
        """
        with self.port.exclusive(f"Dagster run {context.run_id}"):
            if has_tag(context.run, NEW_WAREHOUSE_TAG):
                self.port.set_aside()
            elif lost := find_lost(self.settings):
                raise lost
            yield self

    @property
    def settings(self) -> Settings:
        """The settings of this process."""
        return load_settings()

    @property
    def port(self) -> port.Warehouse:
        """The warehouse of these settings."""
        return port.Warehouse(self.settings)

    @contextmanager
    def open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection for one step."""
        with self.port.open() as connection:
            create_tables(connection)
            yield connection
