"""Manual price sources: the pairs that they support, and the prices entered for them."""

from typing import Annotated

from litestar import Controller
from sqlalchemy.orm import Session

from api.examples import EXAMPLE_SUPPORTED_PAIR_ID, EXAMPLE_SYMBOL, EXAMPLE_UNUSED_SUPPORTED_PAIR_ID
from api.http.bodies import Rows
from api.http.calls import Call, Tabular, Written
from api.http.lists import STORED, read_list, stored
from api.http.parameters import Cursor, From, Injected, Limit, To, in_path, read_range
from api.http.route_specs import Example, RouteSpec
from api.http.routes import delete, get, post
from api.http.structs import filled
from api.prices.parameters import SourceId
from api.prices.schemas.sources import ManualPrice, ManualPriceBatch, ManualPrices, SupportedPair, SupportedPairs
from control.access import Role
from control.inputs import SUPPORTED_PAIR_ID
from control.pricing import manual_prices, supported_pairs
from control.pricing.manual_prices import ManualPriceCreate, ManualPriceRow
from control.pricing.supported_pairs import SupportedPairCreate, SupportedPairRow

SupportedPairId = Annotated[
    str, in_path("pairId", "Id of the pair of this source, `spair_...`.", EXAMPLE_SUPPORTED_PAIR_ID, SUPPORTED_PAIR_ID)
]


class SupportedPairController(Controller):
    """What manual sources have prices of."""

    path = "/v2/price-sources/{id:str}/pairs"
    tags = ("Manual prices",)

    @post(
        "/",
        RouteSpec(
            example=Example(body={"pricedAs": EXAMPLE_SYMBOL, "pricedIn": "USD", "priceType": "Market"}),
            role=Role.OPERATOR,
            statuses={201: "The pair was stored."},
            errors=(409,),
        ),
    )
    def create_supported_pair(
        self,
        call: Injected[Call],
        source_id: SourceId,
        payload: Injected[SupportedPairCreate],
    ) -> Written[SupportedPair]:
        """Add a pair to a manual price source.

        You can then enter prices for it. This works without a price pair, and for a disabled source. A preconfigured
        source or an existing pair returns 409.
        """

        def work(session: Session) -> SupportedPair:
            definitions = call.services.price_sources
            return _to_supported_pair(supported_pairs.create(session, call.principal, definitions, source_id, payload))

        return call.write_once(201, work, lambda identifier: f"/v2/price-sources/{source_id}/pairs/{identifier}")

    @get("/", RouteSpec(errors=(409,)))
    def list_supported_pairs(
        self, call: Injected[Call], source_id: SourceId, limit: Limit = 50, cursor: Cursor = None
    ) -> SupportedPairs | Tabular[SupportedPair]:
        """List the pairs of a manual price source.

        Oldest first. A preconfigured source returns 409.
        """

        definitions = call.services.price_sources
        fetch = stored(
            call,
            lambda session, count, after: supported_pairs.list_page(
                session, call.tenant_id, definitions, source_id, count, after
            ),
            lambda rows, *_: [_to_supported_pair(pair) for pair in rows],
        )
        position = call.position(cursor, STORED)
        fetch(None, None, 1)  # What is wrong is told before the first of many rows.
        return read_list(call, SupportedPairs, SupportedPair, fetch, limit, position)

    @get("/{pairId:str}")
    def read_supported_pair(self, call: Injected[Call], source_id: SourceId, pair_id: SupportedPairId) -> SupportedPair:
        """Read one pair of a manual price source.

        The id is the pair's id at this source.
        """
        with call.store.read() as session:
            pair = supported_pairs.get(session, call.tenant_id, call.services.price_sources, source_id, pair_id)
        return _to_supported_pair(pair)

    @delete(
        "/{pairId:str}",
        RouteSpec(
            example=Example(path={"pairId": EXAMPLE_UNUSED_SUPPORTED_PAIR_ID}),
            role=Role.ADMIN,
            statuses={204: "The pair is removed."},
            errors=(409,),
        ),
    )
    def remove_supported_pair(self, call: Injected[Call], source_id: SourceId, pair_id: SupportedPairId) -> None:
        """Remove a pair of a manual price source.

        Its prices are removed too. If a price pair uses it, the answer is 409, and names the price pair.
        """
        with call.store.write() as session:
            supported_pairs.remove(session, call.principal, call.services.price_sources, source_id, pair_id)

    @post(
        "/{pairId:str}/prices",
        RouteSpec(
            example=Example(body={"price": "1043.2718", "effectiveFrom": "2026-01-31", "note": "Audited NAV"}),
            role=Role.OPERATOR,
            statuses={201: "The prices were stored."},
        ),
    )
    def create_manual_prices(
        self,
        call: Injected[Call],
        source_id: SourceId,
        pair_id: SupportedPairId,
        payload: Injected[Rows[ManualPriceCreate]],
    ) -> Written[ManualPrice | ManualPriceBatch]:
        """Enter prices.

        The body is one price, an array of prices, or CSV, up to the general limit of 1 MiB; all are stored or none. If
        an instant already has a price, the new one becomes its next revision and replaces it; both are stored. The same
        instant twice in one request is refused. A disabled source accepts prices too. Prices are listed here at once.
        They count in pairs and values after the next cycle, which this request triggers.
        """
        prices = manual_prices.check_prices(payload.rows, is_bulk=payload.is_bulk)

        def work(session: Session) -> ManualPrice | ManualPriceBatch:
            definitions = call.services.price_sources
            stored = manual_prices.enter(session, call.principal, definitions, source_id, pair_id, prices)
            shown = [_to_manual_price(price) for price in stored]
            return ManualPriceBatch(data=shown) if payload.is_bulk else shown[0]

        return call.write_once(201, work, f"/v2/price-sources/{source_id}/pairs/{pair_id}/prices")

    @get("/{pairId:str}/prices", RouteSpec(example=Example(query={"from": "2026-01-01", "limit": "10"})))
    def list_manual_prices(
        self,
        call: Injected[Call],
        source_id: SourceId,
        pair_id: SupportedPairId,
        start: From = None,
        end: To = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> ManualPrices | Tabular[ManualPrice]:
        """List the prices entered for a pair.

        All revisions, newest `effectiveFrom` first, then newest revision first. `from` and `to` limit `effectiveFrom`.
        """
        times = read_range(start, end)

        fetch = stored(
            call,
            lambda session, count, after: manual_prices.list_page(
                session,
                call.tenant_id,
                call.services.price_sources,
                source_id,
                pair_id,
                start=times.start,
                end=times.end,
                limit=count,
                after=after,
            ),
            lambda rows, *_: [_to_manual_price(price) for price in rows],
        )
        position = call.position(cursor, STORED)
        fetch(None, None, 1)  # What is wrong is told before the first of many rows.
        return read_list(call, ManualPrices, ManualPrice, fetch, limit, position)


def _to_supported_pair(pair: SupportedPairRow) -> SupportedPair:
    return filled(SupportedPair, pair, price_source=pair.source_id)


def _to_manual_price(price: ManualPriceRow) -> ManualPrice:
    return filled(ManualPrice, price)
