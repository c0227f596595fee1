"""How a tenant calls addresses on one of its ledgers: the names of its own wallets and tokens there."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, select, true
from sqlalchemy.orm import Session

from control import fields
from control.models import Subject
from control.subjects import Kind, has_open_window


@dataclass(frozen=True, slots=True)
class Label:
    """The label of an address; `name` is the wallet's, else the token's name or symbol."""

    name: str | None
    wallet_id: str | None
    is_token: bool


NO_LABEL = Label(None, None, is_token=False)
"""The label of an address that is neither a wallet nor a token of the tenant."""


def read(session: Session, tenant_id: str, ledger_id: str, addresses: Collection[str]) -> dict[str, Label]:
    """Return the labels of stored addresses; those that the tenant has not added are missing."""
    return _read(session, tenant_id, ledger_id, Subject.address.in_(addresses))


def read_all(session: Session, tenant_id: str, ledger_id: str) -> dict[str, Label]:
    """Return the labels of all addresses that the tenant has added."""
    return _read(session, tenant_id, ledger_id, true())


def addresses_named(session: Session, tenant_id: str, ledger_id: str, q: str) -> list[str]:
    """Return the stored addresses, in order, with a text in the name of their label, in any case.

    Raises:
        Invalid: on 'q'.
    """
    part = fields.check_filter("q", q).casefold()
    # It has the names and more, folded as no database folds them.
    candidates = select(Subject.address).where(
        Subject.tenant_id == tenant_id,
        Subject.ledger_id == ledger_id,
        Subject.removed_at.is_(None),
        Subject.search_text.contains(part, autoescape=True),
    )
    labels = _read(session, tenant_id, ledger_id, Subject.address.in_(candidates))
    return sorted(address for address, label in labels.items() if label.name and part in label.name.casefold())


def tracked_wallets(session: Session, tenant_id: str, wallet_ids: Collection[str]) -> set[str]:
    """Return the ids of the tenant's wallets that are tracked, of some wallets."""
    query = select(Subject.id).where(Subject.tenant_id == tenant_id, Subject.id.in_(wallet_ids), has_open_window())
    return set(session.scalars(query))


def _read(session: Session, tenant_id: str, ledger_id: str, condition: ColumnElement[bool]) -> dict[str, Label]:
    query = (
        select(Subject.address, Subject.kind, Subject.name, Subject.symbol, Subject.id)
        .where(
            Subject.tenant_id == tenant_id,
            Subject.ledger_id == ledger_id,
            Subject.removed_at.is_(None),
            condition,
        )
        .order_by(Subject.kind)  # a token before the wallet of its address
    )
    found: dict[str, Label] = {}
    for address, kind, name, symbol, subject_id in session.execute(query):
        before = found.get(address, NO_LABEL)
        is_wallet = kind == Kind.WALLET.value
        found[address] = Label(
            name or symbol or before.name,
            subject_id if is_wallet else before.wallet_id,
            is_token=before.is_token or not is_wallet,
        )
    return found
