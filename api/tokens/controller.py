"""Tokens: configuration, tracking, activities, cap table."""

from collections.abc import Sequence

from litestar import Controller
from msgspec.structs import asdict, replace
from sqlalchemy.orm import Session

from api.activities import reading as activities
from api.activities.parameters import (
    ActivityStatusFilter,
    DateSort,
    MinimumAmount,
    TokenActivityTypeFilter,
    WalletFilter,
    scale_amount,
)
from api.activities.schemas import TokenActivities, TokenActivity
from api.engine.serving import Snapshot
from api.examples import EXAMPLE_LEDGER
from api.http.calls import ALL_ROWS, Call, Tabular, Written
from api.http.lists import STORED, read_list, stored
from api.http.parameters import (
    AsOfMoment,
    Cursor,
    From,
    FromMoment,
    Injected,
    Limit,
    To,
    ToMoment,
    read_moments,
    read_range,
)
from api.http.route_specs import Example, RouteSpec
from api.http.routes import get, post
from api.subjects.finding import find, parse_address
from api.subjects.moments import (
    View,
    read_view,
    resolve,
    resolve_of_token,
    to_as_of,
    to_coverage,
    to_moment_coverage,
)
from api.subjects.names import Names
from api.subjects.parameters import (
    ExternalIdFilter,
    LedgerFilter,
    LedgerIdFilter,
    Search,
    TokenId,
    TrackingStatusFilter,
)
from api.subjects.resumable import next_page
from api.subjects.warnings import network_warnings
from api.subjects.windows import ever_tracked
from api.tokens import cap_table, cap_table_changes
from api.tokens.parameters import HolderChangeFilter, HolderChangeSort, HolderSort, SymbolFilter, TokenSort
from api.tokens.reading import contract_statuses, to_holder_count_status, to_token_summary
from api.tokens.schemas import (
    CapTable,
    CapTableChanges,
    HolderChange,
    Holding,
    MetadataCheck,
    MetadataChecked,
    StoredToken,
    Tokens,
    TokenSummary,
)
from api.values.explaining import check_explain
from api.values.parameters import Explain
from api.values.reading import CURRENCY, token_prices
from control import tokens
from control.access import Role
from control.subjects import Kind, SubjectFilters, SubjectRow, TokenCreate


class TokenController(Controller):
    """A tenant's tokens."""

    path = "/v1/tokens"
    tags = ("Tokens",)

    @post(
        "/",
        RouteSpec(
            example=Example(
                body={
                    "ledger": EXAMPLE_LEDGER,
                    "symbol": "DAI",
                    "ledgerId": "0x6B175474E89094C44Da98b954EedeAC495271d0F",
                    "externalId": "asset-17",
                    "name": "Dai Stablecoin",
                }
            ),
            role=Role.OPERATOR,
            statuses={201: "The token was stored."},
            errors=(409,),
        ),
    )
    def create_token(self, call: Injected[Call], payload: Injected[TokenCreate]) -> Written[StoredToken]:
        """Add a token.

        The token is stored with tracking disabled. The next cycle reads the contract at the address; until then
        `contractStatus` is `Unknown`. An existing address on the same ledger returns 409. `warnings` says if the
        ledger's network is disabled.
        """

        def work(session: Session) -> StoredToken:
            token = tokens.create(session, call.principal, call.services.networks, payload)
            warnings = network_warnings(call.services.networks, token.network)
            return StoredToken(**asdict(to_token_summary(token, {}, set())), warnings=warnings)

        return call.write_once(201, work, lambda identifier: f"/v1/tokens/{identifier}")

    @get("/", RouteSpec(example=Example(query={"ledger": EXAMPLE_LEDGER, "sort": "symbol", "limit": "10"})))
    def list_tokens(
        self,
        call: Injected[Call],
        ledger: LedgerFilter = None,
        ledger_id: LedgerIdFilter = None,
        symbol: SymbolFilter = None,
        external_id: ExternalIdFilter = None,
        tracking_status: TrackingStatusFilter = None,
        q: Search = None,
        sort: TokenSort = "createdAt",
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Tokens | Tabular[TokenSummary]:
        """List the tenant's tokens.

        Tokens with summary data that match all given filters. A new token is in the list at once.
        """
        filters = SubjectFilters(ledger, ledger_id, symbol, external_id, tracking_status, q)

        def to_items(rows: Sequence[SubjectRow], session: Session, snapshot: Snapshot) -> list[TokenSummary]:
            statuses = contract_statuses(snapshot, rows, call.tenant_id)
            tracked = ever_tracked(session, rows)
            prices = token_prices(snapshot, call.tenant_id, [token.subject_key for token in rows])
            return [to_token_summary(token, statuses, tracked, prices) for token in rows]

        fetch = stored(
            call,
            lambda session, count, after: tokens.list_page(
                session, call.tenant_id, call.services.networks, filters, sort, count, after
            ),
            to_items,
        )
        position = call.position(cursor, STORED)
        with call.snapshot() as snapshot:
            return read_list(call, Tokens, TokenSummary, fetch, limit, position, snapshot)

    @get("/{tokenId:str}/activities", RouteSpec(example=Example(query={"type": "Transfer", "minAmount": "0.5"})))
    def list_token_activities(
        self,
        call: Injected[Call],
        token_id: TokenId,
        start: From = None,
        end: To = None,
        activity_type: TokenActivityTypeFilter = None,
        status: ActivityStatusFilter = None,
        wallet: WalletFilter = None,
        minimum_amount: MinimumAmount = None,
        sort: DateSort = "-date",
        explain: Explain = False,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> TokenActivities | Tabular[TokenActivity]:
        """List a token's activities.

        Movements of the token, newest first, as far as the range is covered; `coverage` lists its gaps. The value uses
        the price at the block's time.

        Each page shows the newest data; `asOf.dataVersion` is its version. New activities ahead of your first page do
        not invalidate the cursor. You get 410 if an activity in the part that you already read was added, was removed,
        or changed its quantity.
        """
        check_explain(explain, call.is_tabular, limit)
        subject, windows = find(call, Kind.TOKEN, token_id)
        times, position = read_range(start, end), call.position(cursor, tuple[int, int, int, str])
        with call.snapshot() as snapshot:
            view = read_view(snapshot, subject, windows)
            state = resolve(snapshot, view, None)
            filters = activities.TokenFilters(
                times,
                activity_type,
                status,
                None if wallet is None else parse_address(call.services.networks, subject, "wallet", wallet),
                None if minimum_amount is None else scale_amount("minAmount", minimum_amount, _decimals(view)),
                newest_first=sort == "-date",
                explains=explain,
            )
            walk = activities.token_activities(view, Names(call.store, subject), filters)
            answer = TokenActivities(
                data=[],
                page=ALL_ROWS,
                metadata_status=view.metadata_status,
                currency=CURRENCY,
                as_of=to_as_of(view, state, snapshot),
                coverage=to_coverage(view, state, times),
            )
            if call.is_tabular:
                return call.tabular(snapshot, TokenActivity, walk.fetch, answer, subject)
            fetched = next_page(snapshot, walk, position, limit)
            page = call.page(snapshot, fetched, limit)
        return replace(answer, data=list(fetched.rows), page=page)

    @post(
        "/{tokenId:str}/metadata-checks",
        RouteSpec(
            example=Example(body={"accept": False}),
            role=Role.OPERATOR,
            statuses={202: "The request was stored; the next cycle reads the contract."},
        ),
    )
    def check_token_metadata(
        self, call: Injected[Call], token_id: TokenId, payload: Injected[MetadataCheck]
    ) -> Written[MetadataChecked]:
        """Read a token's contract again.

        The next cycle compares kind, symbol, name and decimals of the contract with the stored ones. A confirmed
        reading is never replaced by itself. To apply a change that `metadata.found` shows, send `accept` as true.
        """

        def work(session: Session) -> MetadataChecked:
            token = tokens.get(session, call.tenant_id, token_id)
            requested_at = tokens.request_metadata(session, call.principal, token, accept=payload.accept)
            return MetadataChecked(id=token.id, requested_at=requested_at)

        return call.write_once(202, work, lambda identifier: f"/v1/tokens/{identifier}")

    @get("/{tokenId:str}/cap-table", RouteSpec(example=Example(query={"limit": "10"}), errors=(409,)))
    def read_token_cap_table(
        self,
        call: Injected[Call],
        token_id: TokenId,
        as_of: AsOfMoment = None,
        sort: HolderSort = "rank",
        explain: Explain = False,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> CapTable | Tabular[Holding]:
        """Read a token's cap table.

        Every holder with a known balance other than zero at the moment. Percentages are of the total supply; the part
        of the supply without a known holder is `unattributed`. Values use the price of that moment. Without `asOf`, the
        moment is the newest covered block. All pages show the version of the first page, which is available until an
        hour after the last use of its cursor.
        """
        check_explain(explain, call.is_tabular, limit)
        subject, windows = find(call, Kind.TOKEN, token_id)
        moment, position = call.moment(as_of), call.position(cursor, tuple[int, str, str])
        with call.snapshot(position) as snapshot:
            view = read_view(snapshot, subject, windows)
            state, status = resolve_of_token(snapshot, view, moment)
            summary = cap_table.read_summary(snapshot, view, state, status)
            names = Names(call.store, subject)
            answer = CapTable(
                total_supply=summary.supply.shown,
                total_supply_raw=summary.supply.raw,
                total_supply_status=summary.supply.status,
                holder_count=summary.holder_count,
                holder_count_status=to_holder_count_status(summary),
                holders_status=summary.holders_status,
                unattributed=cap_table.to_unattributed(summary),
                concentration=cap_table.to_concentration(summary),
                metadata_status=view.metadata_status,
                currency=CURRENCY,
                data=[],
                page=ALL_ROWS,
                as_of=to_as_of(view, state, snapshot),
                as_of_status=status,
                coverage=to_moment_coverage(view, state, status),
            )
            if call.is_tabular:
                columns = cap_table.holder_columns(view, state, summary, names, sort)
                return call.tabular(snapshot, Holding, columns, answer, subject, reads_columns=True)
            fetch = cap_table.holders(view, state, summary, names, sort, explains=explain)
            fetched = fetch(snapshot, position.key if position else None, limit)
            page = call.rank_page(snapshot, fetched, limit, position)
        return replace(answer, data=list(fetched.rows), page=page)

    @get(
        "/{tokenId:str}/cap-table/changes",
        RouteSpec(example=Example(query={"from": "block:260", "change": "New"}), errors=(409,)),
    )
    def read_token_cap_table_changes(
        self,
        call: Injected[Call],
        token_id: TokenId,
        start: FromMoment,
        end: ToMoment = None,
        change: HolderChangeFilter = None,
        sort: HolderChangeSort = "-difference",
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> CapTableChanges | Tabular[HolderChange]:
        """Compare a token's cap tables of two moments.

        Every holder with a different quantity: new, gone or changed. Both moments must be covered, or before the
        token's creation, when there were no holders. The time between them may have gaps; `coverage` lists them. All
        pages show one version, as for the cap table.
        """
        subject, windows = find(call, Kind.TOKEN, token_id)
        first, last = read_moments(start, end, call.now)
        position = call.position(cursor, tuple[int])
        with call.snapshot(position) as snapshot:
            view = read_view(snapshot, subject, windows)
            before, after = cap_table_changes.resolve_both(snapshot, view, first, last)
            changes = cap_table_changes.Changes(view, Names(call.store, subject), before, after, change, sort)
            # A file needs only the totals, and every page has them.
            count = 1 if call.is_tabular else limit
            found = cap_table_changes.read_page(snapshot, changes, position.key if position else None, count)
            answer = CapTableChanges(
                from_=to_as_of(view, before, snapshot),
                from_status=changes.statuses[0],
                to=to_as_of(view, after, snapshot),
                to_status=changes.statuses[1],
                totals=found.totals,
                metadata_status=view.metadata_status,
                data=[],
                page=ALL_ROWS,
                coverage=changes.coverage,
            )
            if call.is_tabular:
                return call.tabular(
                    snapshot,
                    HolderChange,
                    lambda version, key, count: cap_table_changes.read_page(version, changes, key, count).fetched,
                    answer,
                    subject,
                )
            page = call.rank_page(snapshot, found.fetched, limit, position)
        return replace(answer, data=list(found.fetched.rows), page=page)


def _decimals(view: View) -> int:
    """Return the decimals for amounts; 0 if they are unknown, so that amounts stay in base units."""
    return (view.token.decimals if view.token else None) or 0
