"""Prices of pairs over time, by the pair or by a token that is linked to it."""

from litestar import Controller

from api.errors import invalid_parameter
from api.examples import EXAMPLE_LINKED_TOKEN_ID, EXAMPLE_PAIR_ID
from api.http.calls import Call, Tabular
from api.http.lists import read_list
from api.http.parameters import Cursor, From, Injected, Limit, TimeRange, To, read_range
from api.http.route_specs import Example, RouteSpec
from api.http.routes import get
from api.prices.parameters import PairId, PriceInterval, PriceSourceFilter
from api.prices.reading import PriceFilters, interval_prices, price_steps, require_link, source_prices
from api.prices.schemas.prices import PriceHistory, PricePoint
from api.schema import Interval
from api.subjects.intervals import MOST_INTERVALS
from api.subjects.parameters import TokenId
from control import tokens
from control.pricing import pairs
from control.pricing.pairs import PairRow
from control.subjects import SubjectRow


class PairPriceController(Controller):
    """Prices of a tenant's pairs."""

    path = "/v2/pairs/{pairId:str}/prices/history"
    tags = ("Pairs",)

    @get("/", RouteSpec(example=Example(path={"pairId": EXAMPLE_PAIR_ID}, query={"from": "2026-01-31"})))
    def list_pair_prices(
        self,
        call: Injected[Call],
        pair_id: PairId,
        start: From = None,
        end: To = None,
        interval: PriceInterval = None,
        price_source: PriceSourceFilter = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> PriceHistory | Tabular[PricePoint]:
        """List a pair's prices.

        Newest first. Without `interval`, each row is a period in which the system price stays the same, and which
        begins in the range. The system price is the usable price of the first source in the pair's order that has one.
        With `interval`, each row has the system price at the last moment of an interval. The range is then the last 30
        days by default, and an interval that is not over has the present price. With `priceSource`, the rows are all
        prices of that source of the pair, used or not, by the time from which they are in effect.
        """
        with call.store.read() as session:
            pair = pairs.get(session, call.tenant_id, pair_id)
        return _read_prices(call, pair, read_range(start, end), interval, price_source, limit, cursor)


class TokenPriceController(Controller):
    """Prices of a tenant's tokens."""

    path = "/v1/tokens/{tokenId:str}/price-history"
    tags = ("Tokens",)

    @get(
        "/",
        RouteSpec(
            example=Example(path={"tokenId": EXAMPLE_LINKED_TOKEN_ID}, query={"from": "2026-01-31"}), errors=(409,)
        ),
    )
    def list_token_prices(
        self,
        call: Injected[Call],
        token_id: TokenId,
        start: From = None,
        end: To = None,
        interval: PriceInterval = None,
        price_source: PriceSourceFilter = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> PriceHistory | Tabular[PricePoint]:
        """List the prices of the pair that a token is linked to.

        The same rows as the prices of the pair. Without a linked pair: 409.
        """
        with call.store.read() as session:
            token = tokens.get(session, call.tenant_id, token_id)
            linked, _, _ = require_link(token)
            pair = pairs.get(session, call.tenant_id, linked)
        return _read_prices(call, pair, read_range(start, end), interval, price_source, limit, cursor, token)


def _read_prices(
    call: Call,
    pair: PairRow,
    times: TimeRange,
    interval: Interval | None,
    source_id: str | None,
    limit: int,
    cursor: str | None,
    token: SubjectRow | None = None,
) -> PriceHistory | Tabular[PricePoint]:
    if interval is not None and source_id is not None:
        detail = "send either priceSource or interval; with interval the answer has the system price"
        raise invalid_parameter("priceSource", "conflicting-parameters", detail)
    if source_id is not None and source_id not in pair.price_sources:
        detail = f"{source_id} is not a source of {pair.id}; it has {', '.join(pair.price_sources)}"
        raise invalid_parameter("priceSource", "unknown-source", detail)
    position = call.position(cursor, tuple[int])
    filters = PriceFilters(pair, times, call.now)
    if source_id is not None:
        fetch = source_prices(filters, source_id)
    elif interval is not None:
        fetch = interval_prices(filters, interval)
    else:
        fetch = price_steps(filters)

    def moved_by_clock() -> object:
        # A step or price that begins is the newest one; older rows stay. Of intervals the oldest may leave, too.
        return fetch(snapshot, None, 1 if interval is None else MOST_INTERVALS).rows

    with call.snapshot(position) as snapshot:
        return read_list(
            call,
            PriceHistory,
            PricePoint,
            fetch,
            limit,
            position,
            snapshot,
            subject=token,
            label=f"{pair.priced_as}-{pair.priced_in}",
            state=moved_by_clock,
            pair_id=pair.id,
            priced_as=pair.priced_as,
            priced_in=pair.priced_in,
            price_type=pair.price_type.value,
            interval=interval,
        )
