"""Wallets: configuration, tracking, activities, balances."""

from collections.abc import Sequence

from litestar import Controller
from msgspec.structs import asdict, replace
from sqlalchemy.orm import Session

from api.activities import reading as activities
from api.activities.parameters import (
    ActivityId,
    CounterpartyFilter,
    DateSort,
    DirectionFilter,
    TokenFilter,
    WalletActivityTypeFilter,
)
from api.activities.schemas import DescribedWalletActivity, WalletActivities, WalletActivity
from api.engine.serving import Snapshot
from api.errors import invalid_parameter
from api.examples import EXAMPLE_LEDGER, EXAMPLE_WALLET_OF_KEYS_ID
from api.http.calls import ALL_ROWS, Call, Fetched, Tabular, Written
from api.http.lists import STORED, read_list, stored
from api.http.parameters import AsOfMoment, Cursor, From, Injected, IntervalChoice, Limit, To, read_range
from api.http.route_specs import Example, RouteSpec
from api.http.routes import get, post
from api.subjects.finding import find_wallet, parse_address
from api.subjects.moments import read_view, resolve, to_as_of, to_coverage
from api.subjects.names import Names
from api.subjects.parameters import (
    ExternalIdFilter,
    LedgerFilter,
    Search,
    TrackingStatusFilter,
    WalletId,
    WalletLedgerIdFilter,
)
from api.subjects.resumable import next_page
from api.subjects.warnings import network_warnings
from api.values.explaining import check_explain
from api.values.parameters import Explain
from api.values.reading import CURRENCY
from api.wallets import balances, keys
from api.wallets.parameters import WalletSort
from api.wallets.reading import to_wallet_summary
from api.wallets.schemas import (
    BalanceHistoryRow,
    Balances,
    DerivedAddresses,
    Position,
    StoredWallet,
    Wallets,
    WalletSummary,
)
from api.wallets.totals import read_totals
from control import tokens, wallets
from control.access import Role
from control.errors import NotFound
from control.networks.definitions import NATIVE
from control.subjects import SubjectFilters, SubjectRow, WalletCreate


class WalletController(Controller):
    """A tenant's wallets."""

    path = "/v1/wallets"
    tags = ("Wallets",)

    @post(
        "/",
        RouteSpec(
            example=Example(
                body={
                    "ledger": EXAMPLE_LEDGER,
                    "ledgerId": "0x742d35Cc6634C0532925a3b844Bc454e4438f44e",
                    "externalId": "treasury-2",
                    "name": "Treasury",
                }
            ),
            role=Role.OPERATOR,
            statuses={201: "The wallet was stored."},
            errors=(409,),
        ),
    )
    def create_wallet(self, call: Injected[Call], payload: Injected[WalletCreate]) -> Written[StoredWallet]:
        """Add a wallet.

        The wallet is stored with tracking disabled. An existing address on the same ledger returns 409, and so do
        equal keys in any spelling. Answers show keys shortened. A private key is refused and not stored. `warnings`
        says if the ledger's network is disabled.
        """

        def work(session: Session) -> StoredWallet:
            wallet = wallets.create(session, call.principal, call.services.networks, payload)
            warnings = network_warnings(call.services.networks, wallet.network)
            return StoredWallet(**asdict(to_wallet_summary(wallet)), warnings=warnings)

        return call.write_once(201, work, lambda identifier: f"/v1/wallets/{identifier}")

    @get("/", RouteSpec(example=Example(query={"trackingStatus": "enabled"})))
    def list_wallets(
        self,
        call: Injected[Call],
        ledger: LedgerFilter = None,
        ledger_id: WalletLedgerIdFilter = None,
        external_id: ExternalIdFilter = None,
        tracking_status: TrackingStatusFilter = None,
        q: Search = None,
        sort: WalletSort = "createdAt",
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Wallets | Tabular[WalletSummary]:
        """List the tenant's wallets.

        Wallets with address, ledger and tracking status that match all given filters. A new wallet is in the list at
        once.
        """
        filters = SubjectFilters(ledger, ledger_id, None, external_id, tracking_status, q)

        def to_items(rows: Sequence[SubjectRow], session: Session, snapshot: Snapshot) -> list[WalletSummary]:
            links = call.services.links_in_force(session, call.tenant_id)
            totals = read_totals(snapshot, session, links, rows)
            return [to_wallet_summary(wallet, totals.get(wallet.subject_key)) for wallet in rows]

        fetch = stored(
            call,
            lambda session, count, after: wallets.list_page(
                session, call.tenant_id, call.services.networks, filters, sort, count, after
            ),
            to_items,
        )
        position = call.position(cursor, STORED)
        with call.snapshot() as snapshot:
            return read_list(call, Wallets, WalletSummary, fetch, limit, position, snapshot)

    @get(
        "/{walletId:str}/keys",
        RouteSpec(example=Example(path={"walletId": EXAMPLE_WALLET_OF_KEYS_ID}), role=Role.ADMIN, errors=(409,)),
    )
    def read_wallet_keys(
        self, call: Injected[Call], wallet_id: WalletId, limit: Limit = 50, cursor: Cursor = None
    ) -> DerivedAddresses:
        """Read the keys of a wallet.

        The whole descriptor of a wallet of keys, and the addresses that are scanned when tracking begins. Other
        answers show the descriptor with shortened keys. A wallet that is a single address returns 409
        `single-address`.
        """
        position = call.position(cursor, tuple[int, int])
        with call.store.read() as session:
            wallet = wallets.get(session, call.tenant_id, wallet_id)
            found = wallets.read_keys(session, call.principal, call.services.networks, wallet)
        fetched = keys.derive_addresses(found, position.key if position else None, limit)
        return DerivedAddresses(
            descriptor=found.descriptor,
            branches=found.branches,
            scan_range=keys.scan_range(found),
            data=list(fetched.rows),
            page=call.page(None, fetched, limit),
        )

    @get("/{walletId:str}/activities", RouteSpec(example=Example(query={"direction": "In"})))
    def list_wallet_activities(
        self,
        call: Injected[Call],
        wallet_id: WalletId,
        start: From = None,
        end: To = None,
        activity_type: WalletActivityTypeFilter = None,
        direction: DirectionFilter = None,
        token: TokenFilter = None,
        counterparty: CounterpartyFilter = None,
        sort: DateSort = "-date",
        explain: Explain = False,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> WalletActivities | Tabular[WalletActivity]:
        """List a wallet's activities.

        Movements of all assets of the wallet, newest first, as far as the range is covered; `coverage` lists its gaps.
        The value uses the price at the block's time.

        Each page shows the newest data; `asOf.dataVersion` is its version. New activities ahead of your first page do
        not invalidate the cursor. You get 410 if an activity in the part that you already read was added, was removed,
        or changed its quantity.
        """
        check_explain(explain, call.is_tabular, limit)
        subject, windows, links = find_wallet(call, wallet_id)
        times, position = read_range(start, end), call.position(cursor, tuple[int, int, int, int, str])
        filters = activities.WalletFilters(
            times,
            activity_type,
            direction,
            None if token is None else _token_address(call, subject, token),
            None
            if counterparty is None
            else parse_address(call.services.networks, subject, "counterparty", counterparty),
            newest_first=sort == "-date",
            explains=explain,
        )
        with call.snapshot() as snapshot:
            view = read_view(snapshot, subject, windows, links)
            state = resolve(snapshot, view, None)
            walk = activities.wallet_activities(view, Names(call.store, subject), filters)
            answer = WalletActivities(
                data=[],
                page=ALL_ROWS,
                currency=CURRENCY,
                as_of=to_as_of(view, state, snapshot),
                coverage=to_coverage(view, state, times),
            )
            if call.is_tabular:
                return call.tabular(snapshot, WalletActivity, walk.fetch, answer, subject)
            fetched = next_page(snapshot, walk, position, limit)
            page = call.page(snapshot, fetched, limit)
        return replace(answer, data=list(fetched.rows), page=page)

    @get("/{walletId:str}/activities/{activityId:str}")
    def read_wallet_activity(
        self, call: Injected[Call], wallet_id: WalletId, activity_id: ActivityId, explain: Explain = False
    ) -> DescribedWalletActivity:
        """Read one activity of a wallet.

        The activity as in the list, with the inputs and outputs of its transaction where the network has them. It
        returns 404 if the block of the activity left the chain.
        """
        subject, windows, links = find_wallet(call, wallet_id)
        with call.snapshot() as snapshot:
            view = read_view(snapshot, subject, windows, links)
            as_of = to_as_of(view, resolve(snapshot, view, None), snapshot)
            names = Names(call.store, subject)
            return activities.read_wallet_activity(snapshot, view, names, activity_id, as_of, explains=explain)

    @get("/{walletId:str}/balances", RouteSpec(example=Example(query={"interval": "1d"}), errors=(409,)))
    def read_wallet_balances(
        self,
        call: Injected[Call],
        wallet_id: WalletId,
        as_of: AsOfMoment = None,
        start: From = None,
        end: To = None,
        interval: IntervalChoice = None,
        explain: Explain = False,
    ) -> Balances | Tabular[Position] | Tabular[BalanceHistoryRow]:
        """Read a wallet's balances.

        `current` has the positions at `asOf`, or at the newest covered block. `history` has the quantities at the end
        of each interval, by default the last 30 days before that moment, day by day. Values use the price of the same
        moments. `asOf` cannot be combined with `from`, `to` and `interval`. CSV, NDJSON and Parquet have the positions,
        or the history if the request has `from`, `to` or `interval`. `explain` explains the positions.
        """
        asks_history = start is not None or end is not None or interval is not None
        if as_of is not None and asks_history:
            raise invalid_parameter("asOf", "conflicting-parameters", "send either asOf, or from, to and interval")
        subject, windows, links = find_wallet(call, wallet_id)
        times, moment = read_range(start, end), call.moment(as_of)
        with call.snapshot() as snapshot:
            view = read_view(snapshot, subject, windows, links)
            state = resolve(snapshot, view, moment)
            current = balances.positions(snapshot, view, state, explains=explain)
            check_explain(explain, call.is_tabular, len(current), "explain")
            answer = Balances(
                current=current,
                history=[],
                interval=interval or "1d",
                holdings_complete=balances.is_complete(state),
                currency=CURRENCY,
                as_of=to_as_of(view, state, snapshot),
                coverage=to_coverage(view, state, times),
            )
            if call.is_tabular and not asks_history:
                return call.tabular(snapshot, Position, lambda *_: Fetched(current, None), answer, subject)
            history = balances.history(snapshot, view, state, times, interval or "1d")
            if call.is_tabular:
                rows = balances.to_rows(history)
                return call.tabular(snapshot, BalanceHistoryRow, lambda *_: Fetched(rows, None), answer, subject)
        return replace(answer, history=history)


def _token_address(call: Call, wallet: SubjectRow, text: str) -> str:
    """Return the stored address of the asset that a filter names: an address, `native`, or the id of a token.

    Raises:
        ApiError: 422, the text is malformed, or not the id of the tenant's token on this network.
    """
    if text == NATIVE:
        return text
    if not text.startswith("tok_"):
        return parse_address(call.services.networks, wallet, "token", text)
    try:
        with call.store.read() as session:
            token = tokens.get(session, call.tenant_id, text)
    except NotFound as error:
        raise invalid_parameter("token", "unknown-token", error.detail) from error
    if token.network != wallet.network:
        raise invalid_parameter("token", "other-network", f"{text} is on another network than the wallet")
    return token.address
