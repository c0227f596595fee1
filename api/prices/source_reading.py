"""Price sources and priced items in answers, with the polls and market lists from the marts."""

from collections.abc import Mapping

from api.engine.rows import as_utc
from api.engine.serving import Snapshot
from api.http.structs import filled
from api.prices.rows import ListedSymbolRow, SourcePollRow
from api.prices.schemas import items as priced_items
from api.prices.schemas import sources as price_sources
from control.pricing.definitions import PriceSource
from control.pricing.items import ItemRow
from control.pricing.sources import SourceKind, SourceRow, is_manual


def read_polls(snapshot: Snapshot, tenant_id: str) -> dict[str, price_sources.PollStatus]:
    """Return the last poll of each source that the pipeline polls for a tenant, by the source's id."""
    return {
        row.source_id: price_sources.PollStatus(polled_at=as_utc(row.polled_at), error=row.poll_error)
        for row in snapshot.rows("source_polls", SourcePollRow, tenant_id=tenant_id)
    }


def to_price_source(source: SourceRow, polls: Mapping[str, price_sources.PollStatus]) -> price_sources.PriceSource:
    """Convert a source to the struct of answers; `polls` is the result of `read_polls`."""
    return filled(
        price_sources.PriceSource,
        source,
        enabled=source.is_enabled,
        price_types=list(source.price_types),
        history_types=list(source.history_types),
        granularities=list(source.granularities),
        status=polls.get(source.id) if source.kind is SourceKind.PRECONFIGURED else None,
    )


def mapping_statuses(
    snapshot: Snapshot, tenant_id: str, item: ItemRow, definitions: Mapping[str, PriceSource]
) -> dict[str, priced_items.SymbolMappingStatus]:
    """Return the status of an item's mappings by source id, from the market lists published for the tenant."""
    statuses: dict[str, priced_items.SymbolMappingStatus] = {}
    for source_id in item.mappings:
        if source_id in definitions:
            statuses[source_id] = "Pending"
        else:
            # The source may no longer be preconfigured.
            statuses[source_id] = "NotNeeded" if is_manual(source_id) else "Unknown"
    if item.mappings:
        asked = {"source_ids": list(item.mappings), "symbols": list(item.mappings.values()), "tenant_id": tenant_id}
        for row in snapshot.rows("listed_symbols", ListedSymbolRow, **asked):
            if row.is_collected:
                statuses[row.source_id] = "Resolved" if row.is_listed else "Unknown"
    return statuses


def to_priced_item(
    item: ItemRow, statuses: Mapping[str, priced_items.SymbolMappingStatus] | None = None
) -> priced_items.PricedItem:
    """Convert an item to the struct of answers, with the statuses of its mappings if given."""
    mappings = [
        priced_items.MappingSymbol(price_source=source_id, symbol=symbol)
        if statuses is None
        else priced_items.MappingSymbol(price_source=source_id, symbol=symbol, mapping_status=statuses[source_id])
        for source_id, symbol in item.mappings.items()
    ]
    return filled(priced_items.PricedItem, item, class_=item.item_class.value, mappings=mappings)
