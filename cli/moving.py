"""`ledgermart tenant move`: takes a tenant's rows to the store of versions, for the pipeline of another shard."""

from typing import Any

from rich.console import Console

from cli.copying import copy_progress
from cli.stores import open_existing
from control import moves, tenants
from control.errors import Conflict
from control.moves import Bundle
from control.settings import Settings, SettingsError
from pipelines.moves.leaving import object_prefix, write_bundle
from warehouse.folders import FolderError, scratch_folder
from warehouse.port import Warehouse
from warehouse.shared import delete_objects, open_objects


def run_move(settings: Settings, name: str, to: int, console: Console) -> dict[str, Any]:
    """Store a tenant's rows for another shard, and record the move; return the result for `--json`.

    A move that was begun before continues with new rows.

    Raises:
        SettingsError: LEDGERMART_VERSIONS is not set.
        NotFound: there is no such tenant.
        Invalid, Conflict: the tenant cannot move there from this shard, or the move was cancelled meanwhile.
        ObjectStoreError: the store of versions does not answer; repeat the command.
        FolderError: this data folder has no warehouse, or the disk is too small.
    """
    if settings.versions is None:
        raise SettingsError("a tenant moves through the store of versions: set LEDGERMART_VERSIONS for both shards")
    warehouse = Warehouse(settings)
    if not warehouse.exists():
        raise FolderError(f"{settings.data_dir} has no warehouse; run the command with the data folder of the shard")
    objects = open_objects(settings)
    store = open_existing(settings)
    with store.write() as session:
        tenant = tenants.get_by_name(session, name)
        tenant_id = tenant.id
        # Before the copy: from the next cycle on, the tenant's requests wait, so that the copy has all results.
        moves.begin(session, tenant, settings.shard, to)
    with scratch_folder(settings.data_dir / f".move-{tenant_id}") as folder, copy_progress(console) as listener:
        with warehouse.open_copy(folder, listener) as connection:
            with store.read() as session:
                keys = moves.read_keys(session, tenant_id)
            bundle = write_bundle(connection, keys, folder)
        stored = objects.put(bundle, object_prefix(tenant_id))
    try:
        with store.write() as session:
            before = moves.record(session, Bundle(tenant_id, *stored), settings.shard, to)
    except Conflict:
        objects.delete(stored.name)
        raise
    if before is not None and before != stored.name:
        objects.delete(before)
    return {"tenant": name, "shard": settings.shard, "nextShard": to, "bytes": stored.byte_count}


def run_cancel(settings: Settings, name: str) -> dict[str, Any]:
    """Cancel the move of a tenant, and delete its stored rows; return the result for `--json`.

    Raises:
        NotFound: there is no such tenant.
        Conflict: it is not moving, or not any more.
        ObjectStoreError: the store of versions does not answer; the move is cancelled all the same.
    """
    store = open_existing(settings)
    with store.write() as session:
        tenant = tenants.get_by_name(session, name)
        tenant_id, shard = tenant.id, tenant.shard
        moves.cancel(session, tenant)
    if settings.versions is not None:
        delete_objects(open_objects(settings), object_prefix(tenant_id))
    return {"tenant": name, "shard": shard, "nextShard": None}
