"""Pairs: what a tenant prices, by which type of price and from which sources."""

from litestar import Controller
from msgspec import UNSET
from msgspec.structs import replace
from sqlalchemy.orm import Session

from api.errors import invalid_body
from api.examples import EXAMPLE_PAIR_ID
from api.http.calls import Call, Tabular, Written
from api.http.lists import STORED, read_all, read_list, stored
from api.http.parameters import Cursor, Injected, Limit
from api.http.route_specs import Example, RouteSpec
from api.http.routes import delete, get, patch, post
from api.prices.pair_reading import markets_in, to_pairs
from api.prices.parameters import PairId
from api.prices.schemas.pairs import Pair, Pairs
from api.schema import FieldError
from control.access import Role
from control.errors import Conflict, Invalid
from control.pricing import pairs
from control.pricing.pairs import PairCreate, PairPatch


class PairController(Controller):
    """A tenant's pairs."""

    path = "/v2/pairs"
    tags = ("Pairs",)

    @post(
        "/",
        RouteSpec(
            example=Example(
                body={
                    "pricedAs": "BTC",
                    "pricedIn": "USD",
                    "priceType": "Bid",
                    "priceSources": ["src_kraken"],
                    "maxAge": "PT1H",
                    "maxJump": "25",
                }
            ),
            role=Role.OPERATOR,
            statuses={201: "The pair was stored."},
            errors=(409,),
        ),
    )
    def create_pair(self, call: Injected[Call], payload: Injected[PairCreate]) -> Written[Pair]:
        """Add a pair.

        The price of the pair is the usable price of the first source that has one. Each source is searched for a spot
        market of exactly these symbols, or of their mapping symbols. The order is: a market in the pair's direction,
        then in the opposite direction if `allowInverse` is true, then two markets through the `bridge`. A source
        without such a market is an error. If several assets have one symbol, the answer is 409, and names them. If the
        market list is not collected yet, `mappingStatus` is `Pending`. A manual source must already have the pair. An
        existing pair of the same items and price type returns 409.
        """
        source_ids, field = _source_ids(payload)

        def work(session: Session) -> Pair:
            try:
                pair = pairs.create(
                    session,
                    call.principal,
                    call.services.price_sources,
                    markets_in(snapshot, call.tenant_id),
                    replace(payload, price_sources=source_ids),
                )
            except Invalid as error:
                if error.field != "priceSources":
                    raise
                raise Invalid(field, error.code, error.detail) from error
            except Conflict as error:
                if field == "priceSources":
                    raise
                fields = [field if name.startswith("priceSources/") else name for name in error.fields]
                raise Conflict(error.code, error.detail, error.existing_id, error.pairs, fields) from error
            return to_pairs(session, snapshot, call.services.price_sources, [pair], call.now)[0]

        with call.snapshot() as snapshot:
            return call.write_once(201, work, lambda identifier: f"/v2/pairs/{identifier}")

    @get("/", RouteSpec(example=Example(query={"limit": "10"})))
    def list_pairs(self, call: Injected[Call], limit: Limit = 50, cursor: Cursor = None) -> Pairs | Tabular[Pair]:
        """List the tenant's pairs.

        Oldest first, each with its newest price and its markets at the sources.
        """

        fetch = stored(
            call,
            lambda session, count, after: pairs.list_page(session, call.tenant_id, count, after),
            lambda rows, session, version: to_pairs(session, version, call.services.price_sources, rows, call.now),
        )
        position = call.position(cursor, STORED)
        with call.snapshot() as snapshot:
            # The clock alone may make a price stale, or put another one in force.
            return read_list(
                call, Pairs, Pair, fetch, limit, position, snapshot, state=lambda: read_all(call, snapshot, fetch)
            )

    @get("/{pairId:str}", RouteSpec(example=Example(path={"pairId": EXAMPLE_PAIR_ID})))
    def read_pair(self, call: Injected[Call], pair_id: PairId) -> Pair:
        """Read one pair.

        The answer has its newest price and its markets at the sources.
        """
        with call.snapshot() as snapshot, call.store.read() as session:
            pair = pairs.get(session, call.tenant_id, pair_id)
            return to_pairs(session, snapshot, call.services.price_sources, [pair], call.now)[0]

    @patch(
        "/{pairId:str}",
        RouteSpec(
            example=Example(body={"maxAge": None, "maxDeviation": 2.5, "allowInverse": True}),
            role=Role.OPERATOR,
            errors=(409,),
        ),
    )
    def patch_pair(
        self,
        call: Injected[Call],
        pair_id: PairId,
        payload: Injected[PairPatch],
    ) -> Pair:
        """Change a pair.

        Changes the sources and their order, and the rules for finding and checking prices. A field that is left out
        stays the same; null removes a limit. A new source must be enabled and have the price; an existing one may stay.
        The next cycle checks stored prices again by the new rules.
        """
        with call.snapshot() as snapshot, call.store.write() as session:
            pair = pairs.update(
                session,
                call.principal,
                call.services.price_sources,
                markets_in(snapshot, call.tenant_id),
                pair_id,
                payload,
            )
            answer = to_pairs(session, snapshot, call.services.price_sources, [pair], call.now)[0]
        return answer

    @delete("/{pairId:str}", RouteSpec(role=Role.ADMIN, statuses={204: "The pair is removed."}, errors=(409,)))
    def remove_pair(self, call: Injected[Call], pair_id: PairId) -> None:
        """Remove a pair.

        Its discoveries end, and its prices are not shown any more. If tokens are linked to it, the answer is 409, and
        names them.
        """
        with call.store.write() as session:
            pairs.remove(session, call.principal, pair_id)


def _source_ids(payload: PairCreate) -> tuple[list[str], str]:
    """Return the sources in order, and the property that they were given by."""
    if payload.price_sources is not UNSET and payload.price_source is UNSET:
        return payload.price_sources, "priceSources"
    if payload.price_source is not UNSET and payload.price_sources is UNSET:
        return [payload.price_source], "priceSource"
    code, detail = ("missing", "priceSources is missing; list the ids of price sources")
    if payload.price_source is not UNSET:
        code, detail = ("repeated", "both priceSources and priceSource are given; send one of them")
    raise invalid_body([FieldError(pointer="/priceSources", code=code, detail=detail)])
