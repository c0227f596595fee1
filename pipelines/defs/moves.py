"""Tenants that move between shards: arrivals and departures at the start of a cycle, the switch after a publication."""

from __future__ import annotations

import logging

import duckdb

from control import moves, serving
from control.moves import Bundle
from control.settings import Settings
from control.store import ControlStore
from pipelines.moves.arriving import (
    BundleError,
    arrive,
    find_imported,
    find_uncollected,
    is_imported,
    record_arrived,
)
from pipelines.moves.leaving import leave, object_prefix
from pipelines.raw.builds import finish_batch, newest_published_batch
from pipelines.tenants.configuration import open_batch
from warehouse.folders import scratch_folder

_FOLDER = "moves"


def settle_moves(
    settings: Settings, store: ControlStore, connection: duckdb.DuckDBPyConnection, run_id: str, log: logging.Logger
) -> list[str]:
    """Delete the rows of tenants that left, and import those that arrive; return the imported tenants not served yet.

    A failed import is logged, and later cycles repeat it; the tenant stays in its shard meanwhile.

    Args:
        settings: name the shard and the store of versions; without one no tenant moves.
        store: the control store.
        connection: the open warehouse.
        run_id: of the cycle.
        log: of the cycle.
    """
    if settings.versions is None:
        return []
    # A publication may have been killed before the switch.
    switch_arrived(settings, store, connection, log)
    with store.read() as session:
        arriving = moves.find_arriving(session, settings.shard)
        residents = moves.find_residents(session, settings.shard)
        left = moves.find_left(session, settings.shard)
    for tenant_id in find_imported(connection):
        if tenant_id in residents:
            record_arrived(connection, tenant_id)
        elif tenant_id not in {bundle.tenant_id for bundle in arriving}:
            left.add(tenant_id)  # the move was cancelled
    for tenant_id in sorted(left):
        with store.read() as session:
            keys = moves.read_keys(session, tenant_id)
        leave(connection, keys)
        with store.write() as session:
            moves.forget_left(session, tenant_id, settings.shard)
    for bundle in arriving:
        if not is_imported(connection, bundle.tenant_id, bundle.object_name):
            _import(settings, store, connection, bundle, run_id, log)
    return [bundle.tenant_id for bundle in arriving if is_imported(connection, bundle.tenant_id, bundle.object_name)]


def _import(
    settings: Settings,
    store: ControlStore,
    connection: duckdb.DuckDBPyConnection,
    bundle: Bundle,
    run_id: str,
    log: logging.Logger,
) -> None:
    # Imported only where it is configured.
    from warehouse.bundles import bundle_path
    from warehouse.objects import ObjectStoreError, StoredObject
    from warehouse.shared import open_objects

    stored = StoredObject(bundle.object_name, bundle.byte_count, bundle.sha256)
    try:
        with scratch_folder(settings.data_dir / _FOLDER) as folder:
            open_objects(settings).fetch(stored, bundle_path(folder))
            with store.read() as session:
                keys = moves.read_keys(session, bundle.tenant_id)
            batch_id = open_batch(connection, f"{run_id}/moves")
            arrive(connection, keys, folder, bundle.object_name, batch_id)
            finish_batch(connection, batch_id)
    except (ObjectStoreError, BundleError, duckdb.Error) as error:
        log.error("tenant %s cannot move to shard %s yet: %s", bundle.tenant_id, settings.shard, error)


def switch_arrived(
    settings: Settings, store: ControlStore, connection: duckdb.DuckDBPyConnection, log: logging.Logger
) -> list[str]:
    """Serve the imported tenants in the newest publication from this shard from now on; return them.

    A tenant waits until that publication has newer blocks of all its networks than the import. Otherwise as-of would go
    back if the node of this shard does not answer.

    Arguments as `settle_moves`.
    """
    if settings.versions is None:
        return []
    published = newest_published_batch(connection)
    found = find_imported(connection, published)
    for tenant_id in list(found):
        if networks := find_uncollected(connection, tenant_id, published):
            log.warning(
                "tenant %s stays in its shard until shard %s has collected %s after the import",
                *(tenant_id, settings.shard, ", ".join(networks)),
            )
            del found[tenant_id]
    if not found:
        return []
    with store.write() as session:
        served = serving.read_served(session, settings.shard)
        switched = [
            tenant_id
            for tenant_id, object_name in found.items()
            if served and moves.finish(session, tenant_id, settings.shard, object_name, served.version)
        ]
    for tenant_id in switched:
        record_arrived(connection, tenant_id)
        _delete_bundles(settings, tenant_id, log)
    return switched


def _delete_bundles(settings: Settings, tenant_id: str, log: logging.Logger) -> None:
    from warehouse.objects import ObjectStoreError
    from warehouse.shared import delete_objects, open_objects

    try:
        delete_objects(open_objects(settings), object_prefix(tenant_id))
    except ObjectStoreError as error:
        log.warning("the moved rows of tenant %s stay in the store of versions: %s", tenant_id, error)
