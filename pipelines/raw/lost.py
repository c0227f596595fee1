"""Check for a warehouse that was lost with collected data."""

from contextlib import closing

from control.collected import describe_collected, has_finished_operations
from control.settings import Settings
from control.store import open_store
from warehouse.damage import DamagedFileError
from warehouse.port import Warehouse


def find_lost(settings: Settings) -> DamagedFileError | None:
    """Return the error that names a lost warehouse and its data; None if the file exists or nothing was collected.

    Raises:
        StoreUnavailable: the control store cannot be read.
    """
    warehouse = Warehouse(settings)
    if warehouse.exists():
        return None
    with closing(open_store(settings)) as store, store.read() as session:
        had_warehouse = warehouse.has_remains() or has_finished_operations(session, settings.shard)
        collected = describe_collected(session, settings.shard)
    return warehouse.lost(collected) if had_warehouse and collected else None
