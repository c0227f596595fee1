"""Values of wallets at their newest covered blocks, and their changes in 24 hours.

A version contains both, by the links at the time of its build. If the link of a wallet's asset has changed since, this
module computes both from the positions, by the same rules.
"""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy.orm import Session

from api.engine.serving import Snapshot
from api.http.parameters import INSTANT
from api.schema import Decimal
from api.subjects.moments import State, View, read_view, resolve, state_before
from api.values.reading import changed_assets, read_links, total, total_status, wallet_totals
from api.values.rows import WalletTotalRow
from api.values.schemas import TotalStatus, WalletChangeStatus
from api.wallets import balances
from api.wallets.rows import HeldAssetRow
from api.wallets.schemas import Position
from control import subjects
from control.pricing.links import LinksInForce
from control.subjects import SubjectRow
from figures.numbers import quotient

_DAY = timedelta(days=1)
_VALUE_DECIMALS = 18


def read_total(snapshot: Snapshot, view: View) -> WalletTotalRow | None:
    """Return the value of one wallet at its newest covered block; None until the pipeline has collected it."""
    subject = view.subject
    found = wallet_totals(snapshot, [subject]).get(subject.subject_key)
    if found is None or not is_relinked(snapshot, view):
        return found
    state = resolve(snapshot, view, None)
    if state is None:
        return found
    earlier, missing = positions_before(snapshot, view, state)
    return total_of(view, balances.positions(snapshot, view, state), earlier, missing)


def is_relinked(snapshot: Snapshot, view: View) -> bool:
    """Return whether the link of an asset that the wallet ever held has changed since the version's build."""
    subject, changed = view.subject, read_links(snapshot, view).changed
    return bool(changed) and bool(_holders_of(snapshot, subject.tenant_id, [subject.subject_key], changed))


def read_totals(
    snapshot: Snapshot, session: Session, links: LinksInForce, wallets: Sequence[SubjectRow]
) -> dict[int, WalletTotalRow]:
    """Return the values of a tenant's wallets at their newest covered blocks, by subject key."""
    if not wallets:
        return {}
    tenant_id, keys = wallets[0].tenant_id, [wallet.subject_key for wallet in wallets]
    found = wallet_totals(snapshot, wallets)
    changed = changed_assets(snapshot, tenant_id, links)
    if not changed:
        return found
    holders = _holders_of(snapshot, tenant_id, keys, changed)
    for wallet in wallets:
        if wallet.subject_key in holders:
            view = read_view(snapshot, wallet, subjects.windows(session, wallet.subject_key), links)
            row = read_total(snapshot, view)
            found |= {} if row is None else {wallet.subject_key: row}
    return found


def positions_before(snapshot: Snapshot, view: View, state: State) -> tuple[list[Position] | None, WalletChangeStatus]:
    """Return the positions 24 hours before a moment; if they are unknown, return None and the reason."""
    if state.valued_at is None:
        return None, "UnknownTime"
    before = state_before(snapshot, view, state.valued_at - _DAY + INSTANT)
    return (None, "NotCovered") if before is None else (balances.positions(snapshot, view, before), "Priced")


def total_of(
    view: View, positions: Sequence[Position], earlier: Sequence[Position] | None, missing: WalletChangeStatus
) -> WalletTotalRow:
    """Compute value and change from the positions at a moment and 24 hours before (None: `missing` says why)."""
    status = total_status([one.value_status for one in positions])
    unpriced = sorted(one.token.symbol or one.token.ledger_id for one in positions if one.value is None)
    change, change_status, omitted = (None, missing, []) if earlier is None else change_between(positions, earlier)
    return WalletTotalRow(
        subject_key=view.subject.subject_key,
        total_value=total(one.value for one in positions if one.value) if status == "Priced" else None,
        total_value_status=status,
        value_complete=not unpriced,
        unpriced=unpriced,
        change24h=change,
        change24h_status=change_status,
        change24h_omitted=omitted,
    )


def change_between(
    positions: Sequence[Position], earlier: Sequence[Position]
) -> tuple[Decimal | None, WalletChangeStatus, list[str]]:
    """Return the change in percent of the values known at both moments, its status, and the omitted assets.

    An asset that is not held at a moment has the value 0 then.
    """
    now, before = ({one.token.ledger_id: one for one in held} for held in (positions, earlier))
    pairs = [(now.get(asset), before.get(asset)) for asset in now | before]
    unknown = [[one for one in pair if one and one.value is None] for pair in pairs]
    reasons = [missing[0] for missing in unknown if missing]
    omitted = sorted(one.token.symbol or one.token.ledger_id for one in reasons)
    if reasons and len(reasons) == len(pairs):
        return None, _as_change_status(total_status([one.value_status for one in reasons])), omitted
    known = [pair for pair, missing in zip(pairs, unknown, strict=True) if not missing]
    units = [[_units(one.value) if one and one.value else 0 for one in pair] for pair in known]
    worth, base = (sum(pair[at] for pair in units) for at in (0, 1))
    if base == 0:
        return None, "ZeroBase", omitted
    return quotient(100 * (worth - base), base), "Partial" if omitted else "Priced", omitted


def _holders_of(snapshot: Snapshot, tenant_id: str, wallet_keys: Sequence[int], addresses: Sequence[str]) -> set[int]:
    """Return the wallets that ever held one of the assets."""
    rows = snapshot.rows(
        "wallets_with_assets",
        HeldAssetRow,
        tenant_id=tenant_id,
        subject_keys=list(wallet_keys),
        token_addresses=list(addresses),
    )
    return {row.subject_key for row in rows}


def _as_change_status(status: TotalStatus) -> WalletChangeStatus:
    # The type of a wallet's change has no UnknownSupply. That status never occurs for wallets.
    return "NotCovered" if status == "UnknownSupply" else status


def _units(value: Decimal) -> int:
    whole, _, fraction = value.removeprefix("-").partition(".")
    return (-1 if value.startswith("-") else 1) * int(whole + fraction.ljust(_VALUE_DECIMALS, "0"))
