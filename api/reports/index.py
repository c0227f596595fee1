"""What the index page lists: the tokens and wallets that a tenant has reports of."""

from api.reading.holders import count_holders
from api.reading.subjects import to_holder_count_status, to_token_summary, to_tracking_status, to_wallet_summary
from api.reading.values import CURRENCY, token_prices, wallet_totals
from api.reports.calls import EmbedCall
from api.schemas.report_data import IndexToken, IndexWallet, ReportIndex
from api.serving import Snapshot
from control import subjects, tenants
from control.subjects import Kind, SubjectFilters, SubjectRow


def read_index(call: EmbedCall, snapshot: Snapshot, q: str | None, limit: int, offset: int) -> ReportIndex:
    """Return one page of a tenant's tokens and one of its wallets, oldest first.

    Raises:
        Invalid: on 'q'.
    """
    filters = SubjectFilters(q=q)
    with call.store.read() as session:
        tenant = tenants.get(session, call.tenant_id)
        tokens, token_total = subjects.list_slice(
            session, call.tenant_id, Kind.TOKEN, filters, limit=limit, offset=offset
        )
        wallets, wallet_total = subjects.list_slice(
            session, call.tenant_id, Kind.WALLET, filters, limit=limit, offset=offset
        )
    return ReportIndex(
        tenant=tenant.name,
        currency=CURRENCY,
        tokens=_to_tokens(snapshot, call.tenant_id, tokens),
        token_total=token_total,
        wallets=_to_wallets(snapshot, call.tenant_id, wallets),
        wallet_total=wallet_total,
        limit=limit,
        offset=offset,
        data_version=snapshot.data_version(call.tenant_id),
    )


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


def _to_wallets(snapshot: Snapshot, tenant_id: str, rows: list[SubjectRow]) -> list[IndexWallet]:
    totals = wallet_totals(snapshot, tenant_id, [row.subject_key for row in rows])
    found: list[IndexWallet] = []
    for row in rows:
        summary = to_wallet_summary(row, totals)
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
