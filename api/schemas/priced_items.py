"""Priced items on the wire."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from api.schemas.common import Instant, Page, Schema
from api.schemas.inputs import described, line, whole
from control.fields import NAME_LENGTH, SYMBOL_LENGTH
from control.pricing.items import MOST_MAPPINGS, SYMBOL

ItemClass = Literal["Currency", "Cryptocurrency", "Commodity", "Equity", "Option", "Fund", "Other"]
SymbolMappingStatus = Annotated[
    Literal["Resolved", "Unknown", "Pending", "NotNeeded"],
    Meta(
        description="Whether the source lists a market with this symbol, its own code or the unified one; `Pending` "
        "while its market list is not collected, `NotNeeded` for a manual source, which prices your own items."
    ),
]


class PricedItemCreate(Schema, frozen=True, kw_only=True):
    """An item to add."""

    symbol: Annotated[
        str,
        described("Unique for the tenant, case-sensitive.", ["BTC"], pattern=whole(SYMBOL)),
    ]
    name: Annotated[str, line(NAME_LENGTH, "Name for people.", ["Bitcoin"])]
    class_: Annotated[ItemClass, Meta(description="Class of the asset.")] = field(name="class")


class PricedItemPatch(Schema, frozen=True, kw_only=True):
    """Changes to an item; what is left out stays. The symbol is fixed."""

    name: Annotated[str, line(NAME_LENGTH, "Name for people.")] | UnsetType = UNSET
    class_: ItemClass | UnsetType = field(name="class", default=UNSET)


class MappingSymbolPut(Schema, frozen=True, kw_only=True):
    """The symbol of an item at a source."""

    price_source: Annotated[str, Meta(description="`src_...`", examples=["src_kraken"])]
    symbol: Annotated[str, line(SYMBOL_LENGTH, "As the source writes it, or its unified code.", ["XBT"])]


class MappingSymbolsPut(Schema, frozen=True, kw_only=True):
    """All mappings of an item; they replace those there were."""

    mappings: Annotated[list[MappingSymbolPut], described("In any order.", maxItems=MOST_MAPPINGS)]


class MappingSymbol(Schema, frozen=True, kw_only=True):
    """The symbol of an item at a source."""

    price_source: Annotated[str, Meta(description="`src_...`")]
    symbol: str
    mapping_status: SymbolMappingStatus | UnsetType = UNSET


class PricedItem(Schema, frozen=True, kw_only=True):
    """Something that has a price, or that prices are expressed in."""

    id: Annotated[str, Meta(description="`item_...`; items are addressed by their symbol.")]
    symbol: str
    name: str
    class_: ItemClass = field(name="class")
    mappings: Annotated[
        list[MappingSymbol],
        Meta(
            description="Symbols at sources, by source; at others the item is looked for under its own symbol. The "
            "list of items leaves `mappingStatus` out."
        ),
    ]
    created_at: Instant
    updated_at: Instant


class PricedItems(Schema, frozen=True, kw_only=True):
    """Priced items of the tenant, oldest first."""

    data: list[PricedItem]
    page: Page
