"""Content of the index page: the tokens and wallets that have reports."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from api.engine.serving import Snapshot
from api.reports.calls import EmbedCall
from api.reports.schemas.report_data import IndexToken, IndexTokenSort, IndexWallet, IndexWalletSort, ReportIndex
from api.schema import TrackingStatus
from api.subjects.windows import to_tracking_status
from api.tokens.holders import count_holders
from api.tokens.reading import to_holder_count_status, to_token_summary
from api.values.reading import CURRENCY, token_prices, total
from api.values.rows import WalletTotalRow
from api.wallets.reading import to_wallet_summary
from api.wallets.totals import read_totals
from control import subjects, tenants
from control.subjects import Kind, SubjectFilters, SubjectRow

Entry = TypeVar("Entry", IndexToken, IndexWallet)


def read_index(
    call: EmbedCall,
    snapshot: Snapshot,
    q: str | None,
    tracking_status: TrackingStatus | None,
    token_sort: IndexTokenSort,
    wallet_sort: IndexWalletSort,
    limit: int,
    offset: int,
) -> ReportIndex:
    """Return a page of a tenant's tokens and a page of its wallets.

    Raises:
        Invalid: `q` is invalid.
    """
    filters = SubjectFilters(q=q, tracking_status=tracking_status)
    with call.store.read() as session:
        links = call.services.links_in_force(session, call.tenant_id)
        tenant = tenants.get(session, call.tenant_id)
        # Read all rows: sort keys and totals come from the marts, so the control store cannot cut the page.
        token_rows, wallet_rows = (
            subjects.list_all(session, call.tenant_id, call.services.networks, kind, filters)
            for kind in (Kind.TOKEN, Kind.WALLET)
        )
        totals = read_totals(snapshot, session, links, wallet_rows)
    tokens, wallets = _to_tokens(snapshot, call.tenant_id, token_rows), _to_wallets(wallet_rows, totals)
    return ReportIndex(
        tenant=tenant.name,
        currency=CURRENCY,
        tokens=_sorted(tokens, token_sort)[offset : offset + limit],
        token_total=len(tokens),
        token_value=_sum(token.market_capitalization for token in tokens),
        wallets=_sorted(wallets, wallet_sort)[offset : offset + limit],
        wallet_total=len(wallets),
        wallet_value=_sum(wallet.total_value for wallet in wallets),
        limit=limit,
        offset=offset,
        data_version=snapshot.data_version(call.tenant_id),
    )


_KEYS: dict[str, Callable[[Any], Any]] = {
    "name": lambda entry: (entry.name or getattr(entry, "symbol", entry.ledger_id)).casefold(),
    "holders": lambda token: token.holder_count,
    "change": lambda wallet: _number(wallet.change24h),
    "value": lambda entry: _number(entry.market_capitalization if isinstance(entry, IndexToken) else entry.total_value),
}


def _sorted(entries: list[Entry], sort: str) -> list[Entry]:
    """Sort entries; equal ones stay oldest first, and entries without a sort key come last."""
    if sort == "created":
        return entries
    key = _KEYS[sort.removeprefix("-")]
    known = [entry for entry in entries if key(entry) is not None]
    return sorted(known, key=key, reverse=sort.startswith("-")) + [entry for entry in entries if key(entry) is None]


def _number(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def _sum(values: Iterable[str | None]) -> str | None:
    known = [value for value in values if value is not None]
    return total(known) if known else None


def _to_tokens(snapshot: Snapshot, tenant_id: str, rows: list[SubjectRow]) -> list[IndexToken]:
    keys = [row.subject_key for row in rows]
    prices = token_prices(snapshot, tenant_id, keys)
    counts = count_holders(snapshot, tenant_id, keys)
    found: list[IndexToken] = []
    for row in rows:
        summary, counted_row = to_token_summary(row, {}, set(), prices), counts.get(row.subject_key)
        found.append(
            IndexToken(
                id=row.id,
                name=row.name,
                symbol=summary.symbol,
                ledger=row.ledger_name,
                network=row.network,
                ledger_id=row.presented_address,
                tracking_status=to_tracking_status(row),
                holder_count=counted_row.holder_count if counted_row else None,
                holder_count_status=to_holder_count_status(counted_row),
                market_capitalization=summary.market_capitalization,
                market_capitalization_status=summary.market_capitalization_status,
            )
        )
    return found


def _to_wallets(rows: list[SubjectRow], totals: Mapping[int, WalletTotalRow]) -> list[IndexWallet]:
    found: list[IndexWallet] = []
    for row in rows:
        summary = to_wallet_summary(row, totals.get(row.subject_key))
        found.append(
            IndexWallet(
                id=row.id,
                name=row.name,
                ledger=row.ledger_name,
                network=row.network,
                ledger_id=row.presented_address,
                tracking_status=to_tracking_status(row),
                total_value=summary.total_value,
                total_value_status=summary.total_value_status,
                value_complete=summary.value_complete,
                change24h=summary.change24h,
                change24h_status=summary.change24h_status,
                change24h_omitted=summary.change24h_omitted,
            )
        )
    return found
