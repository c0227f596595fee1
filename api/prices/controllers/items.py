"""Priced items: the symbols that pairs are made of, and what sources call them."""

from typing import Annotated

from litestar import Controller
from sqlalchemy.orm import Session

from api.engine.serving import Snapshot
from api.examples import EXAMPLE_SYMBOL, EXAMPLE_UNUSED_SYMBOL
from api.http.calls import Call, Tabular, Written
from api.http.lists import STORED, read_list, stored
from api.http.parameters import Cursor, Injected, Limit, in_path
from api.http.route_specs import Example, RouteSpec
from api.http.routes import delete, get, patch, post, put
from api.prices.schemas.items import PricedItem, PricedItems
from api.prices.source_reading import mapping_statuses, to_priced_item
from control.access import Role
from control.inputs import ITEM
from control.pricing import items
from control.pricing.items import ItemRow, MappingSymbolsPut, PricedItemCreate, PricedItemPatch

Symbol = Annotated[str, in_path("symbol", "Symbol of the item, as it was added.", EXAMPLE_SYMBOL, ITEM)]


class PricedItemController(Controller):
    """A tenant's priced items."""

    path = "/v1/priced-items"
    tags = ("Priced items",)

    @post(
        "/",
        RouteSpec(
            example=Example(body={"symbol": "ETH", "name": "Ether", "class": "Cryptocurrency"}),
            role=Role.OPERATOR,
            statuses={201: "The item was stored."},
            errors=(409,),
        ),
    )
    def create_priced_item(self, call: Injected[Call], payload: Injected[PricedItemCreate]) -> Written[PricedItem]:
        """Add a priced item.

        No item is preinstalled; add USD like any other symbol. An existing symbol returns 409. Symbols are
        case-sensitive.
        """

        def work(session: Session) -> PricedItem:
            return to_priced_item(items.create(session, call.principal, payload), {})

        return call.write_once(201, work, f"/v1/priced-items/{payload.symbol}")

    @get("/", RouteSpec(example=Example(query={"limit": "10"})))
    def list_priced_items(
        self, call: Injected[Call], limit: Limit = 50, cursor: Cursor = None
    ) -> PricedItems | Tabular[PricedItem]:
        """List the tenant's priced items.

        Oldest first.
        """

        fetch = stored(
            call,
            lambda session, count, after: items.list_page(session, call.tenant_id, count, after),
            lambda rows, *_: [to_priced_item(item) for item in rows],
        )
        return read_list(call, PricedItems, PricedItem, fetch, limit, call.position(cursor, STORED))

    @get("/{symbol:str}")
    def read_priced_item(self, call: Injected[Call], symbol: Symbol) -> PricedItem:
        """Read one priced item.

        The answer has its symbols at sources, and their status in the sources' market lists.
        """
        with call.store.read() as session:
            item = items.get(session, call.tenant_id, symbol)
        with call.snapshot() as snapshot:
            return _with_statuses(call, snapshot, item)

    @patch(
        "/{symbol:str}",
        RouteSpec(example=Example(body={"name": "Bitcoin", "class": "Cryptocurrency"}), role=Role.OPERATOR),
    )
    def patch_priced_item(
        self,
        call: Injected[Call],
        symbol: Symbol,
        payload: Injected[PricedItemPatch],
    ) -> PricedItem:
        """Change a priced item.

        Changes name and class; a field that is left out stays the same. The symbol is the item's identity and is fixed.
        """
        with call.snapshot() as snapshot:
            with call.store.write() as session:
                item = items.update(session, call.principal, symbol, payload)
            return _with_statuses(call, snapshot, item)

    @delete(
        "/{symbol:str}",
        RouteSpec(
            example=Example(path={"symbol": EXAMPLE_UNUSED_SYMBOL}),
            role=Role.ADMIN,
            statuses={204: "The item is removed."},
            errors=(409,),
        ),
    )
    def remove_priced_item(self, call: Injected[Call], symbol: Symbol) -> None:
        """Remove a priced item.

        Its symbol can be used again. If a pair, the bridge of a pair, or a pair of a manual source uses the item, the
        answer is 409, and names them.
        """
        with call.store.write() as session:
            items.remove(session, call.principal, symbol)

    @put(
        "/{symbol:str}/mapping-symbols",
        RouteSpec(
            example=Example(body={"mappings": [{"priceSource": "src_kraken", "symbol": "XBT"}]}), role=Role.OPERATOR
        ),
    )
    def put_mapping_symbols(
        self,
        call: Injected[Call],
        symbol: Symbol,
        payload: Injected[MappingSymbolsPut],
    ) -> PricedItem:
        """Set the symbols of a priced item at sources.

        They replace all existing ones. Without a symbol for a source, the item's own symbol is searched in the source's
        market list. A symbol that the list does not have is accepted; `mappingStatus` shows it.
        """
        with call.snapshot() as snapshot:
            with call.store.write() as session:
                item = items.put_mappings(session, call.principal, call.services.price_sources, symbol, payload)
            return _with_statuses(call, snapshot, item)


def _with_statuses(call: Call, snapshot: Snapshot, item: ItemRow) -> PricedItem:
    return to_priced_item(item, mapping_statuses(snapshot, call.tenant_id, item, call.services.price_sources))
