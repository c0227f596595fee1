"""Prices that a pair's guards stopped: listed, accepted and rejected."""

from datetime import datetime
from typing import Annotated

from litestar import Controller
from sqlalchemy.orm import Session

from api.engine.rows import as_utc
from api.engine.serving import Snapshot
from api.examples import EXAMPLE_PRICE_ID
from api.http.calls import Call, Fetched, Tabular, Written
from api.http.lists import read_list
from api.http.paging import Key
from api.http.parameters import Cursor, Injected, Limit, in_path
from api.http.route_specs import RouteSpec
from api.http.routes import get, post
from api.prices.parameters import PairId
from api.prices.rows import StoppedPriceRow
from api.prices.schemas.pairs import QuarantinedPrice, QuarantinedPrices
from control.access import Role
from control.errors import Conflict, NotFound
from control.inputs import PRICE_ID
from control.pricing import pairs, reviews
from control.pricing.pairs import PairRow
from control.pricing.reviews import Decision

_DECIDED = {200: "The price with the decision."}

PriceId = Annotated[str, in_path("priceId", "Id of the price, `price_...`.", EXAMPLE_PRICE_ID, PRICE_ID)]

# Behind every price there is.
_START = (datetime.max, "")  # noqa: DTZ901  (naive UTC, as in the marts)


class PriceReviewController(Controller):
    """Prices that a pair's guards stopped."""

    path = "/v2/pairs/{pairId:str}/prices/quarantined"
    tags = ("Pairs",)

    @get("/")
    def list_quarantined_prices(
        self, call: Injected[Call], pair_id: PairId, limit: Limit = 50, cursor: Cursor = None
    ) -> QuarantinedPrices | Tabular[QuarantinedPrice]:
        """List a pair's quarantined prices.

        Prices that the pair's guards stopped, newest first; they are not used for values. An accepted or rejected price
        stays in this list, with its decision, until the next cycle.
        """
        pair, position = _pair(call, pair_id), call.position(cursor, tuple[str, str])

        def fetch(snapshot: Snapshot, after: Key | None, count: int) -> Fetched[QuarantinedPrice]:
            before_time, before_id = _START if after is None else (datetime.fromisoformat(str(after[0])), str(after[1]))
            rows = snapshot.rows(
                "quarantined_prices",
                StoppedPriceRow,
                tenant_id=call.tenant_id,
                pair_key=pair.pair_key,
                before_time=before_time,
                before_id=before_id,
                row_count=count + 1,
            )
            kept = rows[:count]
            with call.store.read() as session:
                decided = reviews.decisions(session, pair.pair_key, [row.price_id for row in kept])
            last = (kept[-1].effective_from.isoformat(), kept[-1].price_id) if len(rows) > count else None
            return Fetched([_to_quarantined(row, decided.get(row.price_id)) for row in kept], last)

        with call.snapshot(position) as snapshot:
            return read_list(call, QuarantinedPrices, QuarantinedPrice, fetch, limit, position, snapshot)

    @post("/{priceId:str}/accept", RouteSpec(role=Role.OPERATOR, statuses=_DECIDED, errors=(409,)))
    def accept_quarantined_price(
        self, call: Injected[Call], pair_id: PairId, price_id: PriceId
    ) -> Written[QuarantinedPrice]:
        """Accept a quarantined price.

        From the next cycle on the price is used in spite of the guards, and later prices are compared with it. You can
        still accept a rejected price. A rate with more digits than a price can have returns 409.
        """
        return _decide(call, pair_id, price_id, Decision.ACCEPTED)

    @post("/{priceId:str}/reject", RouteSpec(role=Role.OPERATOR, statuses=_DECIDED))
    def reject_quarantined_price(
        self, call: Injected[Call], pair_id: PairId, price_id: PriceId
    ) -> Written[QuarantinedPrice]:
        """Reject a quarantined price.

        The price is never used, and from the next cycle on it is not listed any more. You can still reject an accepted
        price.
        """
        return _decide(call, pair_id, price_id, Decision.REJECTED)


def _decide(call: Call, pair_id: str, price_id: str, decision: Decision) -> Written[QuarantinedPrice]:
    pair = _pair(call, pair_id)
    with call.snapshot() as snapshot:
        asked = {"tenant_id": call.tenant_id, "pair_key": pair.pair_key, "price_id": price_id}
        found = snapshot.rows("stopped_price", StoppedPriceRow, **asked)
    if not found:
        raise NotFound("quarantined price", price_id[:100])
    price = found[0]
    if decision is Decision.ACCEPTED and not price.is_usable:
        raise Conflict("price-out-of-range", f"{price.price} has more digits than a price can have; reject it")

    def work(session: Session) -> QuarantinedPrice:
        reviews.decide(session, call.principal, pair_id, price_id, decision)
        return _to_quarantined(price, decision)

    return call.write_once(200, work, f"/v2/pairs/{pair_id}/prices/quarantined")


def _pair(call: Call, pair_id: str) -> PairRow:
    with call.store.read() as session:
        return pairs.get(session, call.tenant_id, pair_id)


def _to_quarantined(row: StoppedPriceRow, decision: Decision | None) -> QuarantinedPrice:
    return QuarantinedPrice(
        id=row.price_id,
        price=row.price,
        effective_from=as_utc(row.effective_from),
        window_start=as_utc(row.window_start),
        is_partial=row.is_partial,
        price_source=row.source_id,
        derivation=row.derivation,
        reason=row.reason,
        decision=None if decision is None else decision.value,
    )
