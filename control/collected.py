"""Counts of collected data, from the control store: for messages about the loss of the warehouse."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control import tenants
from control.models import Ledger, Operation, PricePair, Subject
from control.operations import OperationKind, Status

_KINDS = {
    OperationKind.HISTORY: "finished history request",
    OperationKind.ATTESTATION: "finished attestation",
    OperationKind.PRICE_DISCOVERY: "finished price discovery",
}


def describe_collected(session: Session, shard: int) -> str:
    """Count a shard's collected objects in words, such as "2 tokens and wallets, 1 price pair"; empty for none."""
    of_shard = tenants.ids_in_shard(shard)
    counts = [
        (
            session.scalar(select(func.count()).where(Subject.removed_at.is_(None), Subject.tenant_id.in_(of_shard))),
            "token or wallet",
            "tokens and wallets",
        ),
        (
            session.scalar(
                select(func.count()).where(PricePair.removed_at.is_(None), PricePair.tenant_id.in_(of_shard))
            ),
            "price pair",
            "price pairs",
        ),
        *((_finished(session, shard, kind), words, f"{words}s") for kind, words in _KINDS.items()),
    ]
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts if count)


def has_finished_operations(session: Session, shard: int) -> bool:
    """Return whether any operation of a shard succeeded, which is impossible without the shard's warehouse."""
    return any(_finished(session, shard, kind) for kind in _KINDS)


def _finished(session: Session, shard: int, kind: OperationKind) -> int:
    found = select(func.count()).where(
        Operation.kind == kind,
        Operation.status == Status.SUCCEEDED,
        Operation.tenant_id.in_(tenants.ids_in_shard(shard)),
    )
    return session.scalar(found) or 0


def history_by_network(session: Session, shard: int) -> dict[str, int]:
    """Count a shard's finished history requests of tokens and wallets that were not removed, by network."""
    found = (
        select(Ledger.network, func.count())
        .join(Subject, Subject.ledger_id == Ledger.id)
        .join(Operation, Operation.subject_key == Subject.subject_key)
        .where(Operation.kind == OperationKind.HISTORY, Operation.status == Status.SUCCEEDED)
        .where(Subject.removed_at.is_(None), Subject.tenant_id.in_(tenants.ids_in_shard(shard)))
        .group_by(Ledger.network)
    )
    return {row[0]: row[1] for row in session.execute(found)}
