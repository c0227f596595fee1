"""Tables of a network's lake. Amounts are decimal text, since lakes have no exact type for integers of that size."""

from collections.abc import Iterable

from control.networks.definitions import Network
from control.settings import Settings
from pipelines.extract.data_sets import EXPORTED
from pipelines.extract.families import family_of
from pipelines.tables.families import ROW_TABLES
from pipelines.tables.sources import TABLES
from pipelines.tables.table import BATCHES, BIGNUM, TEXTS, VARCHAR, RowTable
from warehouse.lakes import Lake, LakePlace

READINGS = ("balance_observations", "supply_observations")

# Cycles are numbers of one shard.
_LEFT_OUT = {"network", "batch_id", "is_tail", "row_count"}
_TYPES = {BIGNUM: VARCHAR, BATCHES: TEXTS}
_NAMES = {"visible_to": "tenant_ids"}


def open_lake(settings: Settings, network: Network) -> Lake | None:
    """Return the lake of a network; None where none is configured, or its family lacks the form of exports."""
    if settings.lake is None or EXPORTED not in family_of(network).data_set_forms:
        return None
    place = LakePlace(settings.lake, settings.lake_data)
    columns = {name: columns_of(name) for name in table_names(network)}
    return Lake(place, network.name, columns, settings.staging_path)


def open_lakes(settings: Settings, networks: Iterable[Network]) -> dict[str, Lake]:
    """Return the lakes of the networks that have one, by network."""
    found = ((network.name, open_lake(settings, network)) for network in networks)
    return {name: lake for name, lake in found if lake is not None}


def row_tables(network: Network) -> list[RowTable]:
    """Return the tables with rows of the network's family."""
    return [ROW_TABLES[name] for name in family_of(network).data_set_forms[EXPORTED].rows]


def table_names(network: Network) -> list[str]:
    """Return the names of the tables in the lake of a network."""
    return [*(table.name for table in row_tables(network)), "blocks", "coverage", "verified_ranges", *READINGS]


def columns_of(table: str) -> list[tuple[str, str]]:
    """Return the columns of a table in the lake, by name and type."""
    return [
        (_NAMES.get(column.name, column.name), _TYPES.get(column.type, column.type))
        for column in TABLES[table].columns
        if column.name not in _LEFT_OUT
    ]


def names_of(table: str) -> list[str]:
    """Return the names of a table's columns in the lake."""
    return [name for name, _ in columns_of(table)]


def selected(table: str, source: str = "stored") -> str:
    """Return the columns of a stored raw table in the form of the lake, for `select`."""
    parts = []
    for column in TABLES[table].columns:
        if column.name in _LEFT_OUT:
            continue
        value = f"{source}.{column.name}"
        if column.type == BIGNUM:
            value = f"{value}::varchar"
        elif column.type == BATCHES:
            value = f"list_sort(map_keys({value}))"
        parts.append(f"{value} as {_NAMES.get(column.name, column.name)}")
    return ", ".join(parts)
