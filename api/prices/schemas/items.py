"""Priced items on the wire."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from api.schema import Instant, Page, Schema
from control.pricing.items import ItemClassName

SymbolMappingStatus = Annotated[
    Literal["Resolved", "Unknown", "Pending", "NotNeeded"],
    Meta(
        description="`Resolved`: the source lists a market with this symbol (its own code or the unified one). "
        "`Unknown`: it lists none. `Pending`: its market list is not collected yet. `NotNeeded`: a manual source, "
        "which prices your own items."
    ),
]


class MappingSymbol(Schema, frozen=True, kw_only=True):
    """The symbol of an item at a source."""

    price_source: Annotated[str, Meta(description="`src_...`")]
    symbol: str
    mapping_status: SymbolMappingStatus | UnsetType = UNSET


class PricedItem(Schema, frozen=True, kw_only=True):
    """An item that has a price or that expresses prices."""

    id: Annotated[str, Meta(description="`item_...`. Paths of the API contain the symbol of the item, not this id.")]
    symbol: str
    name: str
    class_: ItemClassName = field(name="class")
    mappings: Annotated[
        list[MappingSymbol],
        Meta(
            description="Symbols of the item at sources, by source. Other sources are searched for the item's own "
            "symbol. The list of items leaves out `mappingStatus`."
        ),
    ]
    created_at: Instant
    updated_at: Instant


class PricedItems(Schema, frozen=True, kw_only=True):
    """Priced items of the tenant, oldest first."""

    data: list[PricedItem]
    page: Page
