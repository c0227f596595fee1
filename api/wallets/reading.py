"""Wallets in lists and details: configuration from the control store, findings from the marts."""

from api.engine.serving import Snapshot
from api.subjects.moments import View, resolve, to_as_of
from api.subjects.windows import to_tracking_status, to_windows
from api.values.rows import WalletTotalRow
from api.wallets import schemas as wallets
from api.wallets.totals import read_total
from control.subjects import SubjectRow


def to_wallet_summary(subject: SubjectRow, total: WalletTotalRow | None = None) -> wallets.WalletSummary:
    """Return the summary of a wallet for lists; it has no value until the pipeline has collected the wallet."""
    return wallets.WalletSummary(
        id=subject.id,
        name=subject.name,
        ledger=subject.ledger_name,
        ledger_id=subject.presented_address,
        external_id=subject.external_id,
        tracking_status=to_tracking_status(subject),
        total_value=total.total_value if total else None,
        total_value_status=total.total_value_status if total else "NotCovered",
        change24h=total.change24h if total else None,
        change24h_status=total.change24h_status if total else "NotCovered",
        change24h_omitted=total.change24h_omitted if total else [],
        value_complete=total.value_complete if total else False,
        unpriced=total.unpriced if total else [],
    )


def to_wallet(snapshot: Snapshot, view: View) -> wallets.Wallet:
    """Return a wallet with its details."""
    subject = view.subject
    summary = to_wallet_summary(subject, read_total(snapshot, view))
    return wallets.Wallet(
        **{name: getattr(summary, name) for name in summary.__struct_fields__},
        windows=to_windows(view.windows),
        created_at=subject.created_at,
        updated_at=subject.updated_at,
        as_of=to_as_of(view, resolve(snapshot, view, None), snapshot),
    )
