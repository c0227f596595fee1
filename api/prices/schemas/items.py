"""Priced items on the wire."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from api.http.inputs import SOURCE_ID, described, line, whole
from api.schema import Instant, Page, Schema
from control.fields import NAME_LENGTH, SYMBOL_LENGTH
from control.pricing.items import MOST_MAPPINGS, SYMBOL

ItemClass = Literal["Currency", "Cryptocurrency", "Commodity", "Equity", "Option", "Fund", "Other"]
SymbolMappingStatus = Annotated[
    Literal["Resolved", "Unknown", "Pending", "NotNeeded"],
    Meta(
        description="`Resolved`: the source lists a market with this symbol (its own code or the unified one). "
        "`Unknown`: it lists none. `Pending`: its market list is not collected yet. `NotNeeded`: a manual source, "
        "which prices your own items."
    ),
]


class PricedItemCreate(Schema, frozen=True, kw_only=True):
    """An item to add."""

    symbol: Annotated[
        str,
        described("Unique for the tenant, case-sensitive.", ["BTC"], pattern=whole(SYMBOL)),
    ]
    name: Annotated[str, line(NAME_LENGTH, "Display name.", ["Bitcoin"])]
    class_: Annotated[ItemClass, Meta(description="Class of the asset.")] = field(name="class")


class PricedItemPatch(Schema, frozen=True, kw_only=True):
    """Changes to an item. A field that is left out stays the same. The symbol is fixed."""

    name: Annotated[str, line(NAME_LENGTH, "Display name.")] | UnsetType = UNSET
    class_: ItemClass | UnsetType = field(name="class", default=UNSET)


class MappingSymbolPut(Schema, frozen=True, kw_only=True):
    """The symbol of an item at a source."""

    price_source: Annotated[str, described("`src_...`", ["src_kraken"], **SOURCE_ID)]
    symbol: Annotated[str, line(SYMBOL_LENGTH, "Symbol in the source's own form, or its unified code.", ["XBT"])]


class MappingSymbolsPut(Schema, frozen=True, kw_only=True):
    """All mappings of an item; they replace the existing ones."""

    mappings: Annotated[list[MappingSymbolPut], described("In any order.", maxItems=MOST_MAPPINGS)]


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
    class_: ItemClass = field(name="class")
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
