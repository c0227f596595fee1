"""Tokens and wallets as lists and details show them: configuration from the control store, findings from the marts."""

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.reading.moments import View, resolve, to_as_of
from api.reading.values import CURRENCY
from api.rows import ContractStatusRow
from api.schemas import common, tokens, wallets
from api.serving import Snapshot
from control.models import TrackingWindow
from control.subjects import SubjectRow, Window


def ever_tracked(session: Session, subjects: Sequence[SubjectRow]) -> set[int]:
    """Return the keys of those subjects whose tracking was ever enabled."""
    keys = [subject.subject_key for subject in subjects]
    query = select(TrackingWindow.subject_key).where(TrackingWindow.subject_key.in_(keys)).distinct()
    return set(session.scalars(query))


def contract_statuses(
    snapshot: Snapshot, subjects: Sequence[SubjectRow], tenant_id: str
) -> dict[int, tokens.ContractStatus]:
    """Return what is at the addresses of tokens, by subject key; what the pipeline has not seen is missing."""
    keys = [subject.subject_key for subject in subjects]
    rows = snapshot.rows("contract_statuses", ContractStatusRow, tenant_id=tenant_id, subject_keys=keys)
    return {row.subject_key: row.contract_status for row in rows}


def is_fungible(snapshot: Snapshot, token: SubjectRow) -> bool | None:
    """Say whether a token's contract is a fungible token; None while that is not known."""
    status = contract_statuses(snapshot, [token], token.tenant_id).get(token.subject_key, "Unknown")
    return {"Fungible": True, "NotFungible": False}.get(status)


def to_windows(windows: Sequence[Window]) -> list[common.Window]:
    """Return tracking windows as answers show them."""
    return [common.Window(from_=window.opened_at, to=window.closed_at) for window in windows]


def to_tracking_status(subject: SubjectRow) -> common.TrackingStatus:
    """Return whether a subject's tracking is enabled."""
    return "enabled" if subject.is_tracked else "disabled"


def to_holder_count_status(holder_count: int | None) -> tokens.HolderCountStatus:
    """Return why a number of holders is missing."""
    return "NotYetCollected" if holder_count is None else "Counted"


def to_token_summary(
    subject: SubjectRow, statuses: Mapping[int, tokens.ContractStatus], tracked: set[int]
) -> tokens.TokenSummary:
    """Return a token as lists show it."""
    return tokens.TokenSummary(
        id=subject.id,
        name=subject.name,
        symbol=subject.symbol or "",
        ledger=subject.ledger_name,
        ledger_id=subject.presented_address,
        external_id=subject.external_id,
        tracking_status=to_tracking_status(subject),
        contract_status=statuses.get(subject.subject_key, "Unknown"),
        priced_as=None,
        priced_in=CURRENCY if subject.subject_key in tracked else None,
        price=None,
        price_status="NoPair",
        market_capitalization=None,
        market_capitalization_status="NoPair",
        change24h=None,
        change24h_status="NoPair",
    )


def to_token(snapshot: Snapshot, view: View) -> tokens.Token:
    """Return a token with its details."""
    subject, facts = view.subject, view.token
    summary = to_token_summary(
        subject,
        {subject.subject_key: facts.contract_status} if facts else {},
        {subject.subject_key} if view.windows else set(),
    )
    supply_status: tokens.SupplyStatus = "Unknown"
    if facts is not None and facts.total_supply_raw is not None:
        supply_status = "ZeroSupply" if facts.total_supply_raw == "0" else "Observed"
    return tokens.Token(
        **{name: getattr(summary, name) for name in summary.__struct_fields__},
        decimals=facts.decimals if facts else None,
        standard=facts.standard if facts else None,
        behaviour=facts.behaviour if facts else None,
        total_supply=(facts.total_supply or facts.total_supply_raw) if facts else None,
        total_supply_status=supply_status,
        holder_count=facts.holder_count if facts else None,
        holder_count_status=to_holder_count_status(facts.holder_count if facts else None),
        windows=to_windows(view.windows),
        pair_id=None,
        created_at=subject.created_at,
        updated_at=subject.updated_at,
        as_of=to_as_of(view, resolve(snapshot, view, None), snapshot.version),
    )


def to_wallet_summary(subject: SubjectRow) -> wallets.WalletSummary:
    """Return a wallet as lists show it."""
    return wallets.WalletSummary(
        id=subject.id,
        name=subject.name,
        ledger=subject.ledger_name,
        ledger_id=subject.presented_address,
        external_id=subject.external_id,
        tracking_status=to_tracking_status(subject),
        total_value=None,
        total_value_status="NoPair",
        change24h=None,
        change24h_status="NoPair",
        value_complete=False,
    )


def to_wallet(snapshot: Snapshot, view: View) -> wallets.Wallet:
    """Return a wallet with its details."""
    subject = view.subject
    summary = to_wallet_summary(subject)
    return wallets.Wallet(
        **{name: getattr(summary, name) for name in summary.__struct_fields__},
        windows=to_windows(view.windows),
        created_at=subject.created_at,
        updated_at=subject.updated_at,
        as_of=to_as_of(view, resolve(snapshot, view, None), snapshot.version),
    )
