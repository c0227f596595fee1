"""The run's hold on the warehouse."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import duckdb

from control.settings import Settings, load_settings
from pipelines.load.warehouse import open_warehouse
from warehouse.lock import writer_lock


class Warehouse(dg.ConfigurableResource["Warehouse"]):
    """The writer lock, held from the first step of a run to its last, and connections under it.

    A step opens its own connection and closes it, because dbt, which is another process, must be able to open the file.
    """

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["Warehouse"]:
        """Hold the lock for the run.

        Raises:
            WriterBusyError: another writer held it for longer than LEDGERMART_LOCK_WAIT_SECONDS.
        """
        settings = self.settings
        with writer_lock(settings.lock_path, f"Dagster run {context.run_id}", settings.lock_wait_seconds):
            yield self

    @property
    def settings(self) -> Settings:
        """The settings of this process."""
        return load_settings()

    @contextmanager
    def open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection for one step."""
        settings = self.settings
        with open_warehouse(settings.warehouse_path, settings.pipeline_memory_mb) as connection:
            yield connection
