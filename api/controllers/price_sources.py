"""Price sources: switching them on and off, and manual ones with their pairs and prices."""

from typing import Annotated, Any, TypeVar

from litestar import Controller, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, SkipValidation
from sqlalchemy.orm import Session

from api.bodies import Rows, body_of, rows_of
from api.calls import Call, Fetched
from api.operations import (
    EXAMPLE_SOURCE_ID,
    EXAMPLE_SUPPORTED_PAIR_ID,
    EXAMPLE_SYMBOL,
    EXAMPLE_UNUSED_SOURCE_ID,
    EXAMPLE_UNUSED_SUPPORTED_PAIR_ID,
    Example,
    Operation,
)
from api.paging import Key
from api.parameters import Cursor, From, Limit, To, read_range
from api.reading.price_sources import read_polls, to_price_source
from api.schemas.common import DataVersion, Schema
from api.schemas.price_sources import (
    ManualPrice,
    ManualPriceBatch,
    ManualPriceCreate,
    ManualPrices,
    PriceSource,
    PriceSourceCreate,
    PriceSourcePatch,
    PriceSources,
    SupportedPair,
    SupportedPairCreate,
    SupportedPairs,
)
from api.serving import Snapshot
from control.access import Role
from control.pages import After
from control.pages import Page as StoredPage
from control.pricing import manual_prices, sources, supported_pairs
from control.pricing.manual_prices import ManualPriceRow, PriceEntry
from control.pricing.supported_pairs import SupportedPairRow

Item = TypeVar("Item", bound=Schema)

_TAG = "Price sources"
_SOURCE = {"id": EXAMPLE_SOURCE_ID}
_PAIR = {**_SOURCE, "pairId": EXAMPLE_SUPPORTED_PAIR_ID}

SourceId = Annotated[str, PathParameter(name="id", description="Id of the price source, `src_...`.")]
SupportedPairId = Annotated[
    str, PathParameter(name="pairId", description="Id of the pair of this source, `spair_...`.")
]


class PriceSourceController(Controller):
    """The preconfigured price sources and a tenant's manual ones."""

    path = "/v2/price-sources"

    @post(
        "/",
        sync_to_thread=True,
        dependencies={"payload": body_of(PriceSourceCreate)},
        operation=Operation(
            answer=PriceSource,
            tag=_TAG,
            example=Example(body={"name": "Fund administrator"}, status=201),
            role=Role.OPERATOR,
            statuses={201: "The source was stored."},
            errors=(409,),
            body=PriceSourceCreate,
        ),
    )
    def create_price_source(
        self, call: NamedDependency[SkipValidation[Call]], payload: NamedDependency[SkipValidation[PriceSourceCreate]]
    ) -> Response[Any]:
        """Add a manual price source.

        Disabled until it is enabled. The same name again is a conflict.
        """

        def work(session: Session) -> PriceSource:
            return to_price_source(sources.create(session, call.principal, payload.name), {})

        return call.write_once(201, work, lambda identifier: f"/v2/price-sources/{identifier}")

    @get(
        "/",
        sync_to_thread=True,
        operation=Operation(
            answer=PriceSources, tag=_TAG, example=Example(query={"limit": "10"}), row=PriceSource, is_paged=True
        ),
    )
    def list_price_sources(
        self, call: NamedDependency[SkipValidation[Call]], limit: Limit = 50, cursor: Cursor = None
    ) -> Response[Any]:
        """List the price sources.

        The preconfigured ones by id, with the state of their last poll, then the tenant's manual ones, oldest first.
        """

        def fetch(snapshot: Snapshot, after: Key | None, count: int) -> Fetched[PriceSource]:
            with call.store.read() as session:
                position = After(str(after[0]), str(after[1])) if after else None
                page = sources.list_page(
                    session, call.tenant_id, call.services.price_sources, min(count, 1000), position
                )
            polls = read_polls(snapshot, call.tenant_id)
            return _fetched(page, [to_price_source(source, polls) for source in page.rows])

        position = call.position(cursor)
        with call.snapshot() as snapshot:
            as_of = DataVersion(data_version=snapshot.version)
            if call.is_tabular:
                return call.tabular(snapshot, PriceSource, fetch, as_of)
            fetched = fetch(snapshot, position.key if position else None, limit)
            page, headers = call.page(snapshot, fetched, limit)
        return call.answer(PriceSources(data=list(fetched.rows), page=page, as_of=as_of), headers)

    @get(
        "/{id:str}",
        sync_to_thread=True,
        operation=Operation(answer=PriceSource, tag=_TAG, example=Example(path=_SOURCE), errors=(404,)),
    )
    def read_price_source(self, call: NamedDependency[SkipValidation[Call]], source_id: SourceId) -> Response[Any]:
        """Read one price source.

        Preconfigured or manual.
        """
        with call.store.read() as session:
            source = sources.get(session, call.tenant_id, call.services.price_sources, source_id)
        with call.snapshot() as snapshot:
            return call.answer(to_price_source(source, read_polls(snapshot, call.tenant_id)))

    @patch(
        "/{id:str}",
        sync_to_thread=True,
        dependencies={"payload": body_of(PriceSourcePatch)},
        operation=Operation(
            answer=PriceSource,
            tag=_TAG,
            example=Example(path=_SOURCE, body={"name": "Fund desk, London"}),
            role=Role.OPERATOR,
            errors=(404, 409),
            body=PriceSourcePatch,
        ),
    )
    def patch_price_source(
        self,
        call: NamedDependency[SkipValidation[Call]],
        source_id: SourceId,
        payload: NamedDependency[SkipValidation[PriceSourcePatch]],
    ) -> Response[Any]:
        """Rename a manual price source.

        What is left out stays. A preconfigured source is a conflict.
        """
        with call.store.write() as session:
            source = sources.rename(session, call.principal, call.services.price_sources, source_id, payload.name)
        return call.written(to_price_source(source, {}))

    @delete(
        "/{id:str}",
        sync_to_thread=True,
        status_code=200,
        operation=Operation(
            answer=None,
            tag=_TAG,
            example=Example(path={"id": EXAMPLE_UNUSED_SOURCE_ID}, status=204),
            role=Role.ADMIN,
            statuses={204: "The source is removed."},
            errors=(404, 409),
        ),
    )
    def remove_price_source(self, call: NamedDependency[SkipValidation[Call]], source_id: SourceId) -> Response[Any]:
        """Remove a manual price source.

        With the pairs that it supports and their prices. While a price pair asks it or a priced item is mapped to it,
        this is a conflict that names them; a preconfigured source is one, too.
        """
        with call.store.write() as session:
            sources.remove(session, call.principal, call.services.price_sources, source_id)
        return call.removed()

    @patch(
        "/{id:str}/enable",
        sync_to_thread=True,
        operation=Operation(
            answer=PriceSource, tag=_TAG, example=Example(path=_SOURCE), role=Role.OPERATOR, errors=(404,)
        ),
    )
    def enable_price_source(self, call: NamedDependency[SkipValidation[Call]], source_id: SourceId) -> Response[Any]:
        """Enable a price source.

        For this tenant alone; pairs may use it then. Enabling an enabled one changes nothing.
        """
        return _switch(call, source_id, enabled=True)

    @patch(
        "/{id:str}/disable",
        sync_to_thread=True,
        operation=Operation(
            answer=PriceSource,
            tag=_TAG,
            example=Example(path={"id": "src_kraken"}),
            role=Role.OPERATOR,
            errors=(404,),
        ),
    )
    def disable_price_source(self, call: NamedDependency[SkipValidation[Call]], source_id: SourceId) -> Response[Any]:
        """Disable a price source.

        For this tenant alone: it is not polled, and new pairs cannot use it. Prices already stored go on valuing, and a
        manual source takes further prices for the pairs that have it. Disabling a disabled one changes nothing.
        """
        return _switch(call, source_id, enabled=False)

    @post(
        "/{id:str}/pairs",
        sync_to_thread=True,
        dependencies={"payload": body_of(SupportedPairCreate)},
        operation=Operation(
            answer=SupportedPair,
            tag=_TAG,
            example=Example(
                path=_SOURCE, body={"pricedAs": EXAMPLE_SYMBOL, "pricedIn": "USD", "priceType": "Market"}, status=201
            ),
            role=Role.OPERATOR,
            statuses={201: "The pair was stored."},
            errors=(404, 409),
            body=SupportedPairCreate,
        ),
    )
    def create_supported_pair(
        self,
        call: NamedDependency[SkipValidation[Call]],
        source_id: SourceId,
        payload: NamedDependency[SkipValidation[SupportedPairCreate]],
    ) -> Response[Any]:
        """Let a manual price source have prices of an item.

        No price pair is needed for it, and the source need not be enabled. A preconfigured source is a conflict, and so
        is the same pair again.
        """

        def work(session: Session) -> SupportedPair:
            return _to_supported_pair(
                supported_pairs.create(
                    session,
                    call.principal,
                    call.services.price_sources,
                    source_id,
                    priced_as=payload.priced_as,
                    priced_in=payload.priced_in,
                    price_type=payload.price_type,
                )
            )

        return call.write_once(201, work, lambda identifier: f"/v2/price-sources/{source_id}/pairs/{identifier}")

    @get(
        "/{id:str}/pairs",
        sync_to_thread=True,
        operation=Operation(
            answer=SupportedPairs,
            tag=_TAG,
            example=Example(path=_SOURCE),
            row=SupportedPair,
            errors=(404, 409),
            is_paged=True,
        ),
    )
    def list_supported_pairs(
        self, call: NamedDependency[SkipValidation[Call]], source_id: SourceId, limit: Limit = 50, cursor: Cursor = None
    ) -> Response[Any]:
        """List the pairs of a manual price source.

        Oldest first. A preconfigured source is a conflict.
        """

        def fetch(_: Snapshot | None, after: Key | None, count: int) -> Fetched[SupportedPair]:
            with call.store.read() as session:
                position = After(str(after[0]), str(after[1])) if after else None
                page = supported_pairs.list_page(
                    session, call.tenant_id, call.services.price_sources, source_id, min(count, 1000), position
                )
            return _fetched(page, [_to_supported_pair(pair) for pair in page.rows])

        position = call.position(cursor)
        fetched = fetch(None, position.key if position else None, limit)
        if call.is_tabular:
            return call.tabular(None, SupportedPair, fetch)
        page, headers = call.page(None, fetched, limit)
        return call.answer(SupportedPairs(data=list(fetched.rows), page=page), headers)

    @get(
        "/{id:str}/pairs/{pairId:str}",
        sync_to_thread=True,
        operation=Operation(answer=SupportedPair, tag=_TAG, example=Example(path=_PAIR), errors=(404,)),
    )
    def read_supported_pair(
        self, call: NamedDependency[SkipValidation[Call]], source_id: SourceId, pair_id: SupportedPairId
    ) -> Response[Any]:
        """Read one pair of a manual price source.

        By its id at this source.
        """
        with call.store.read() as session:
            pair = supported_pairs.get(session, call.tenant_id, call.services.price_sources, source_id, pair_id)
        return call.answer(_to_supported_pair(pair))

    @delete(
        "/{id:str}/pairs/{pairId:str}",
        sync_to_thread=True,
        status_code=200,
        operation=Operation(
            answer=None,
            tag=_TAG,
            example=Example(path={**_SOURCE, "pairId": EXAMPLE_UNUSED_SUPPORTED_PAIR_ID}, status=204),
            role=Role.ADMIN,
            statuses={204: "The pair is removed."},
            errors=(404, 409),
        ),
    )
    def remove_supported_pair(
        self, call: NamedDependency[SkipValidation[Call]], source_id: SourceId, pair_id: SupportedPairId
    ) -> Response[Any]:
        """Remove a pair of a manual price source.

        With its prices. While a price pair asks the source for it, this is a conflict that names it.
        """
        with call.store.write() as session:
            supported_pairs.remove(session, call.principal, call.services.price_sources, source_id, pair_id)
        return call.removed()

    @post(
        "/{id:str}/pairs/{pairId:str}/prices",
        sync_to_thread=True,
        dependencies={"payload": rows_of(ManualPriceCreate)},
        operation=Operation(
            answer=ManualPrice,
            tag=_TAG,
            example=Example(
                path=_PAIR,
                body={"price": "1043.2718", "effectiveFrom": "2026-01-31", "note": "Audited NAV"},
                status=201,
            ),
            role=Role.OPERATOR,
            statuses={201: "The prices were stored."},
            errors=(404,),
            body=ManualPriceCreate,
            bulk_answer=ManualPriceBatch,
        ),
    )
    def create_manual_prices(
        self,
        call: NamedDependency[SkipValidation[Call]],
        source_id: SourceId,
        pair_id: SupportedPairId,
        payload: NamedDependency[SkipValidation[Rows[ManualPriceCreate]]],
    ) -> Response[Any]:
        """Enter prices.

        One price, an array of them, or CSV, up to the 1 MiB that any body may have: all are stored, or none. An instant
        that has a price gets a further revision, which replaces it; both are kept. The same instant twice in one
        request is refused. A disabled source takes prices, too. They show here at once, and in pairs and values after
        the next cycle, which they trigger.
        """
        entries = [PriceEntry(row.price, row.effective_from, row.note) for row in payload.rows]
        prices = manual_prices.check_prices(entries, is_bulk=payload.is_bulk)

        def work(session: Session) -> ManualPrice | ManualPriceBatch:
            definitions = call.services.price_sources
            stored = manual_prices.enter(session, call.principal, definitions, source_id, pair_id, prices)
            shown = [_to_manual_price(price) for price in stored]
            return ManualPriceBatch(data=shown) if payload.is_bulk else shown[0]

        return call.write_once(201, work, f"/v2/price-sources/{source_id}/pairs/{pair_id}/prices")

    @get(
        "/{id:str}/pairs/{pairId:str}/prices",
        sync_to_thread=True,
        operation=Operation(
            answer=ManualPrices,
            tag=_TAG,
            example=Example(path=_PAIR, query={"from": "2026-01-01", "limit": "10"}),
            row=ManualPrice,
            errors=(404,),
            is_paged=True,
        ),
    )
    def list_manual_prices(
        self,
        call: NamedDependency[SkipValidation[Call]],
        source_id: SourceId,
        pair_id: SupportedPairId,
        start: From = None,
        end: To = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response[Any]:
        """List the prices entered for a pair.

        All revisions, newest `effectiveFrom` first and its newest revision first; `from` and `to` are of
        `effectiveFrom`.
        """
        times = read_range(start, end)

        def fetch(_: Snapshot | None, after: Key | None, count: int) -> Fetched[ManualPrice]:
            with call.store.read() as session:
                position = After(str(after[0]), str(after[1])) if after else None
                page = manual_prices.list_page(
                    session,
                    call.tenant_id,
                    call.services.price_sources,
                    source_id,
                    pair_id,
                    start=times.start,
                    end=times.end,
                    limit=min(count, 1000),
                    after=position,
                )
            return _fetched(page, [_to_manual_price(price) for price in page.rows])

        position = call.position(cursor)
        fetched = fetch(None, position.key if position else None, limit)
        if call.is_tabular:
            return call.tabular(None, ManualPrice, fetch)
        page, headers = call.page(None, fetched, limit)
        return call.answer(ManualPrices(data=list(fetched.rows), page=page), headers)


def _switch(call: Call, source_id: str, *, enabled: bool) -> Response[Any]:
    with call.snapshot() as snapshot:
        with call.store.write() as session:
            source = sources.set_enabled(
                session, call.principal, call.services.price_sources, source_id, enabled=enabled
            )
        return call.written(to_price_source(source, read_polls(snapshot, call.tenant_id)))


def _fetched(page: StoredPage[Any], rows: list[Item]) -> Fetched[Item]:
    return Fetched(rows, (page.after.value, page.after.id) if page.after else None)


def _to_supported_pair(pair: SupportedPairRow) -> SupportedPair:
    return SupportedPair(
        id=pair.id,
        price_source=pair.source_id,
        priced_as=pair.priced_as,
        priced_in=pair.priced_in,
        price_type=pair.price_type.value,
        created_at=pair.created_at,
    )


def _to_manual_price(price: ManualPriceRow) -> ManualPrice:
    return ManualPrice(
        id=price.id,
        price=price.price,
        effective_from=price.effective_from,
        revision=price.revision,
        is_current=price.is_current,
        note=price.note,
        created_at=price.created_at,
        created_by=price.created_by,
    )
