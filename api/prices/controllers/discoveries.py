"""Discoveries of a pair's past prices: asked for, watched, and cancelled."""

from typing import Annotated, cast

from litestar import Controller
from sqlalchemy.orm import Session

from api.examples import EXAMPLE_PAIR_OPERATION_ID
from api.http.calls import Call, Tabular, Written
from api.http.parameters import Cursor, Injected, Limit, in_path
from api.http.route_specs import Example, RouteSpec
from api.http.routes import delete, get, post
from api.operations.waiting import Owned, cancel_operation, list_operations, read_operation
from api.prices.parameters import PairId
from api.prices.schemas.pairs import MissingPrices, PriceDiscoveries, PriceDiscovery, WindowProgress
from control.access import Role
from control.inputs import OPERATION_ID
from control.instants import read_instant_or_day
from control.operations import OperationKind, OperationRow
from control.pricing import discovery, pairs
from control.pricing.discovery import PriceDiscoveryRequest, WindowSizeName

OperationId = Annotated[
    str, in_path("operationId", "Id of the discovery, `op_...`.", EXAMPLE_PAIR_OPERATION_ID, OPERATION_ID)
]


class PriceDiscoveryController(Controller):
    """Discoveries of a pair's past prices."""

    path = "/v2/pairs/{pairId:str}/prices"
    tags = ("Pairs",)

    @post(
        "/discovery",
        RouteSpec(
            example=Example(body={"from": "2026-01-01", "to": "2026-02-01", "windowSize": "hour", "multiplier": "0.5"}),
            role=Role.OPERATOR,
            statuses={202: "The request was stored; the pipeline starts it in its next cycle."},
        ),
    )
    def request_price_discovery(
        self,
        call: Injected[Call],
        pair_id: PairId,
        payload: Injected[PriceDiscoveryRequest],
    ) -> Written[PriceDiscovery]:
        """Request past prices of a pair.

        Collects past prices window by window from every enabled source of the pair that has a history of its price
        type; each source is stored separately. The price of a window is its last one, and it is in effect from the
        window's end. A repeated request stores nothing twice.
        """

        def work(session: Session) -> PriceDiscovery:
            definitions = call.services.price_sources
            return _to_discovery(discovery.request(session, call.principal, definitions, pair_id, payload))

        location = f"/v2/pairs/{pair_id}/prices/async-operations"
        return call.write_once(202, work, lambda identifier: f"{location}/{identifier}")

    @get("/async-operations")
    def list_price_discoveries(
        self, call: Injected[Call], pair_id: PairId, limit: Limit = 50, cursor: Cursor = None
    ) -> PriceDiscoveries | Tabular[PriceDiscovery]:
        """List a pair's discoveries.

        Newest first, finished ones included. Each has its progress, the number of prices found, and the ranges without
        prices.
        """
        return list_operations(call, _owned(call, pair_id), PriceDiscoveries, PriceDiscovery, limit, cursor)

    @get("/async-operations/{operationId:str}")
    def read_price_discovery(self, call: Injected[Call], pair_id: PairId, operation_id: OperationId) -> PriceDiscovery:
        """Read one discovery of a pair.

        The progress is the one that the pipeline last reported.
        """
        return read_operation(call, _owned(call, pair_id), operation_id)

    @delete(
        "/async-operations/{operationId:str}",
        RouteSpec(role=Role.OPERATOR, statuses={202: "The discovery will stop."}, errors=(409,)),
    )
    def cancel_price_discovery(
        self, call: Injected[Call], pair_id: PairId, operation_id: OperationId
    ) -> PriceDiscovery:
        """Cancel a discovery of a pair.

        The discovery stops after its current chunk; stored prices stay. A discovery that has finished returns 409.
        """
        return cancel_operation(call, _owned(call, pair_id), operation_id)


def _owned(call: Call, pair_id: str) -> Owned[PriceDiscovery]:
    with call.store.read() as session:
        pair = pairs.get(session, call.tenant_id, pair_id)
    return Owned(OperationKind.PRICE_DISCOVERY, pair.pair_key, _to_discovery)


def _to_discovery(operation: OperationRow) -> PriceDiscovery:
    found = operation.result or {"pricesStored": 0, "missing": []}
    return PriceDiscovery(
        id=operation.id,
        status=operation.status.value,
        progress=WindowProgress(done=operation.progress_done, total=operation.progress_total),
        from_=read_instant_or_day("from", operation.from_text),
        to=read_instant_or_day("to", operation.to_text),
        window_size=cast("WindowSizeName", operation.parameters["windowSize"]),
        multiplier=operation.parameters["multiplier"],
        prices_stored=found["pricesStored"],
        missing=[
            MissingPrices(
                from_=read_instant_or_day("from", one["from"]),
                to=read_instant_or_day("to", one["to"]),
                price_source=one["priceSource"],
            )
            for one in found["missing"]
        ],
        note=operation.note,
        error=operation.error,
        created_at=operation.created_at,
        started_at=operation.started_at,
        cancel_requested_at=operation.cancel_requested_at,
        finished_at=operation.finished_at,
    )
