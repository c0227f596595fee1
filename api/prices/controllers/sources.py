"""Price sources: manual ones, and switching those and the preconfigured ones on and off."""

from collections.abc import Sequence
from functools import partial

from litestar import Controller
from sqlalchemy.orm import Session

from api.engine.serving import Snapshot
from api.examples import EXAMPLE_UNUSED_SOURCE_ID
from api.http.calls import Call, Tabular, Written
from api.http.lists import STORED, read_list, stored
from api.http.parameters import Cursor, Injected, Limit
from api.http.route_specs import Example, RouteSpec
from api.http.routes import delete, get, patch, post
from api.prices.parameters import SourceId
from api.prices.schemas.sources import PriceSource, PriceSources
from api.prices.source_reading import read_polls, to_price_source
from control.access import Role
from control.pricing import sources
from control.pricing.sources import PriceSourceCreate, PriceSourcePatch, SourceRow


class PriceSourceController(Controller):
    """The preconfigured price sources and a tenant's manual ones."""

    path = "/v2/price-sources"
    tags = ("Price sources",)

    @post(
        "/",
        RouteSpec(
            example=Example(body={"name": "Fund administrator"}),
            role=Role.OPERATOR,
            statuses={201: "The source was stored."},
            errors=(409,),
        ),
    )
    def create_price_source(self, call: Injected[Call], payload: Injected[PriceSourceCreate]) -> Written[PriceSource]:
        """Add a manual price source.

        The new source is disabled. An existing name returns 409.
        """

        def work(session: Session) -> PriceSource:
            return to_price_source(sources.create(session, call.principal, payload), {})

        return call.write_once(201, work, lambda identifier: f"/v2/price-sources/{identifier}")

    @get("/", RouteSpec(example=Example(query={"limit": "10"})))
    def list_price_sources(
        self, call: Injected[Call], limit: Limit = 50, cursor: Cursor = None
    ) -> PriceSources | Tabular[PriceSource]:
        """List the price sources.

        First the preconfigured sources by id, with the result of their last poll; then the tenant's manual sources,
        oldest first.
        """

        def to_items(rows: Sequence[SourceRow], _: Session, snapshot: Snapshot) -> list[PriceSource]:
            polls = read_polls(snapshot, call.tenant_id)
            return [to_price_source(source, polls) for source in rows]

        definitions = call.services.price_sources
        fetch = stored(
            call,
            lambda session, count, after: sources.list_page(session, call.tenant_id, definitions, count, after),
            to_items,
        )
        position = call.position(cursor, STORED)
        with call.snapshot() as snapshot:
            polled = partial(read_polls, snapshot, call.tenant_id)
            return read_list(call, PriceSources, PriceSource, fetch, limit, position, snapshot, state=polled)

    @get("/{id:str}")
    def read_price_source(self, call: Injected[Call], source_id: SourceId) -> PriceSource:
        """Read one price source.

        The source may be preconfigured or manual.
        """
        with call.store.read() as session:
            source = sources.get(session, call.tenant_id, call.services.price_sources, source_id)
        with call.snapshot() as snapshot:
            return to_price_source(source, read_polls(snapshot, call.tenant_id))

    @patch(
        "/{id:str}", RouteSpec(example=Example(body={"name": "Fund desk, London"}), role=Role.OPERATOR, errors=(409,))
    )
    def patch_price_source(
        self,
        call: Injected[Call],
        source_id: SourceId,
        payload: Injected[PriceSourcePatch],
    ) -> PriceSource:
        """Rename a manual price source.

        A field that is left out stays the same. A preconfigured source returns 409.
        """
        with call.store.write() as session:
            source = sources.rename(session, call.principal, call.services.price_sources, source_id, payload)
        return to_price_source(source, {})

    @delete(
        "/{id:str}",
        RouteSpec(
            example=Example(path={"id": EXAMPLE_UNUSED_SOURCE_ID}),
            role=Role.ADMIN,
            statuses={204: "The source is removed."},
            errors=(409,),
        ),
    )
    def remove_price_source(self, call: Injected[Call], source_id: SourceId) -> None:
        """Remove a manual price source.

        Its pairs and their prices are removed too. If a price pair uses the source or a priced item is mapped to it,
        the answer is 409, and names them. A preconfigured source returns 409 too.
        """
        with call.store.write() as session:
            sources.remove(session, call.principal, call.services.price_sources, source_id)

    @patch("/{id:str}/enable", RouteSpec(role=Role.OPERATOR))
    def enable_price_source(self, call: Injected[Call], source_id: SourceId) -> PriceSource:
        """Enable a price source.

        Only for this tenant: its pairs may then use the source. Enabling an enabled source changes nothing.
        """
        return _switch(call, source_id, enabled=True)

    @patch("/{id:str}/disable", RouteSpec(example=Example(path={"id": "src_kraken"}), role=Role.OPERATOR))
    def disable_price_source(self, call: Injected[Call], source_id: SourceId) -> PriceSource:
        """Disable a price source.

        Only for this tenant: the source is not polled, and new pairs cannot use it. Stored prices are still used for
        values, and a manual source accepts further prices for pairs that use it. Disabling a disabled source changes
        nothing.
        """
        return _switch(call, source_id, enabled=False)


def _switch(call: Call, source_id: str, *, enabled: bool) -> PriceSource:
    with call.snapshot() as snapshot:
        with call.store.write() as session:
            source = sources.set_enabled(
                session, call.principal, call.services.price_sources, source_id, enabled=enabled
            )
        return to_price_source(source, read_polls(snapshot, call.tenant_id))
