"""One consistent copy of the configuration, as rows for the raw tables of the pipeline.

`TABLES` has a query for each raw table. Its columns have the names of the raw table's columns; the pipeline takes those
that it describes, and ignores others. Objects that were removed are left out.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Select, bindparam, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from control import tenants
from control.models import (
    Base,
    ControlState,
    Ledger,
    ManualPrice,
    ManualSource,
    MappingSymbol,
    Operation,
    PairSource,
    PricedItem,
    PricePair,
    PriceReview,
    SourceSwitch,
    Subject,
    SupportedPair,
    Tenant,
    TrackingWindow,
)
from control.operations import OperationKind, Status

_IS_THERE = (Subject.removed_at.is_(None), Ledger.removed_at.is_(None))

# A window that was opened and closed within one second contains no block.
_HAS_LENGTH = TrackingWindow.closed_at.is_(None) | (TrackingWindow.closed_at > TrackingWindow.opened_at)

_PRICED_AS, _PRICED_IN, _BRIDGE = aliased(PricedItem), aliased(PricedItem), aliased(PricedItem)


def _rows(model: type[Base], **others: ColumnElement[Any] | InstrumentedAttribute[Any]) -> Select[Any]:
    """Select all columns of a table, and others by name."""
    own = (getattr(model, column.key) for column in model.__table__.columns)
    return select(*own, *(column.label(name) for name, column in others.items()))


def _requests(
    kind: OperationKind, owner: InstrumentedAttribute[int | None], **others: ColumnElement[Any]
) -> Select[Any]:
    """Select the operations of a kind, finished or not, with their owner and some of their parameters."""
    is_cancelled = or_(Operation.cancel_requested_at.is_not(None), Operation.status == Status.CANCELLED)
    labels = (column.label(name) for name, column in (others | {"is_cancelled": is_cancelled}).items())
    return (
        select(Operation.operation_key, owner, Operation.status, Operation.created_at, *labels)
        .where(Operation.kind == kind)
        .order_by(Operation.operation_key)
    )


def _parameter(name: str) -> ColumnElement[Any]:
    parameter: ColumnElement[Any] = Operation.parameters[name].as_string()
    return parameter


def _of_subject(query: Select[Any], subject_key: InstrumentedAttribute[Any]) -> Select[Any]:
    """Keep the rows of tokens and wallets that are not removed, nor their ledgers."""
    of_subject = query.join(Subject, Subject.subject_key == subject_key)
    return of_subject.join(Ledger, Ledger.id == Subject.ledger_id).where(*_IS_THERE)


def _of_pair(query: Select[Any], pair_key: InstrumentedAttribute[Any]) -> Select[Any]:
    """Keep the rows of price pairs that are not removed."""
    return query.join(PricePair, PricePair.pair_key == pair_key).where(PricePair.removed_at.is_(None))


def _in_shard(query: Select[Any], tenant_id: InstrumentedAttribute[str]) -> Select[Any]:
    """Keep the rows of tenants of the parameter `shard`, and of `arrived` tenants that are moving there."""
    shard: BindParameter[int] = bindparam("shard")
    arrived: BindParameter[list[str]] = bindparam("arrived", expanding=True)
    moving = select(Tenant.id).where(Tenant.next_shard == shard, Tenant.id.in_(arrived))
    return query.where(or_(tenant_id.in_(tenants.ids_in_shard(shard)), tenant_id.in_(moving)))


_QUERIES: dict[str, Select[Any]] = {
    "control_tenants": _rows(Tenant, tenant_id=Tenant.id, tenant_name=Tenant.name).order_by(Tenant.id),
    "control_held_tenants": select(Tenant.id.label("tenant_id"))
    .where(Tenant.next_shard.is_not(None), Tenant.shard == bindparam("shard"))
    .order_by(Tenant.id),
    "control_ledgers": _rows(Ledger, ledger_id=Ledger.id, ledger_name=Ledger.name)
    .where(Ledger.removed_at.is_(None))
    .order_by(Ledger.id),
    "control_subjects": _rows(Subject, subject_id=Subject.id, network=Ledger.network)
    .join(Ledger, Ledger.id == Subject.ledger_id)
    .where(*_IS_THERE)
    .order_by(Subject.subject_key),
    "control_metadata_requests": _rows(
        Subject, requested_at=Subject.metadata_requested_at, accepted_at=Subject.metadata_accepted_at
    )
    .join(Ledger, Ledger.id == Subject.ledger_id)
    .where(Subject.metadata_requested_at.is_not(None), *_IS_THERE)
    .order_by(Subject.subject_key),
    "control_windows": _of_subject(_rows(TrackingWindow), TrackingWindow.subject_key)
    .where(_HAS_LENGTH)
    .order_by(TrackingWindow.window_key),
    "control_history_requests": _of_subject(
        _requests(
            OperationKind.HISTORY,
            Operation.subject_key,
            from_text=_parameter("from"),
            to_text=_parameter("to"),
            native=func.coalesce(Operation.native, _parameter("native")),
        ),
        Operation.subject_key,
    ),
    "control_attestation_requests": _of_subject(
        _requests(OperationKind.ATTESTATION, Operation.subject_key, as_of_text=_parameter("asOf")),
        Operation.subject_key,
    ),
    "control_priced_items": _rows(PricedItem).where(PricedItem.removed_at.is_(None)).order_by(PricedItem.item_key),
    "control_mapping_symbols": _rows(MappingSymbol)
    .join(PricedItem, PricedItem.item_key == MappingSymbol.item_key)
    .where(PricedItem.removed_at.is_(None))
    .order_by(MappingSymbol.item_key, MappingSymbol.source_id),
    "control_price_pairs": _rows(
        PricePair,
        pair_id=PricePair.id,
        priced_as=_PRICED_AS.symbol,
        priced_in=_PRICED_IN.symbol,
        bridge=_BRIDGE.symbol,
    )
    .join(_PRICED_AS, _PRICED_AS.item_key == PricePair.priced_as_key)
    .join(_PRICED_IN, _PRICED_IN.item_key == PricePair.priced_in_key)
    .outerjoin(_BRIDGE, _BRIDGE.item_key == PricePair.bridge_key)
    .where(PricePair.removed_at.is_(None))
    .order_by(PricePair.pair_key),
    "control_pair_sources": _of_pair(_rows(PairSource), PairSource.pair_key).order_by(
        PairSource.pair_key, PairSource.position
    ),
    "control_supported_pairs": _rows(
        SupportedPair,
        supported_pair_id=SupportedPair.id,
        source_id=ManualSource.id,
        priced_as=_PRICED_AS.symbol,
        priced_in=_PRICED_IN.symbol,
    )
    .join(ManualSource, ManualSource.source_key == SupportedPair.source_key)
    .join(_PRICED_AS, _PRICED_AS.item_key == SupportedPair.priced_as_key)
    .join(_PRICED_IN, _PRICED_IN.item_key == SupportedPair.priced_in_key)
    .where(SupportedPair.removed_at.is_(None), ManualSource.removed_at.is_(None))
    .order_by(SupportedPair.supported_pair_key),
    "control_price_reviews": _of_pair(_rows(PriceReview), PriceReview.pair_key).order_by(
        PriceReview.pair_key, PriceReview.price_id
    ),
    "control_price_discoveries": _of_pair(
        _requests(
            OperationKind.PRICE_DISCOVERY,
            Operation.pair_key,
            from_text=_parameter("from"),
            to_text=_parameter("to"),
            window_size=_parameter("windowSize"),
            multiplier=_parameter("multiplier"),
        ),
        Operation.pair_key,
    ),
}

_TENANT_IDS: dict[str, InstrumentedAttribute[str]] = {
    "control_tenants": Tenant.id,
    "control_held_tenants": Tenant.id,
    "control_ledgers": Ledger.tenant_id,
    "control_subjects": Subject.tenant_id,
    "control_metadata_requests": Subject.tenant_id,
    "control_windows": Subject.tenant_id,
    "control_history_requests": Subject.tenant_id,
    "control_attestation_requests": Subject.tenant_id,
    "control_priced_items": PricedItem.tenant_id,
    "control_mapping_symbols": PricedItem.tenant_id,
    "control_price_pairs": PricePair.tenant_id,
    "control_pair_sources": PricePair.tenant_id,
    "control_supported_pairs": SupportedPair.tenant_id,
    "control_price_reviews": PricePair.tenant_id,
    "control_price_discoveries": PricePair.tenant_id,
}
"""The column with the tenant of each query's rows; some of them are in a joined table."""

TABLES: dict[str, Select[Any]] = {
    "control_revisions": select(ControlState.revision),
    **{name: _in_shard(query, _TENANT_IDS[name]) for name, query in _QUERIES.items()},
}
"""A query for each raw table that is replaced whole, with the parameters `shard` and `arrived`.

The revision is that of all shards.
"""

MANUAL_PRICES = _in_shard(
    _rows(ManualPrice, price_id=ManualPrice.id)
    .join(SupportedPair, SupportedPair.supported_pair_key == ManualPrice.supported_pair_key)
    .order_by(ManualPrice.manual_price_key),
    SupportedPair.tenant_id,
)
"""The query for the raw table that is appended to, since manual prices are many and never change."""


@dataclass(frozen=True, slots=True)
class ControlSnapshot:
    """The configuration of a shard's tenants at one revision.

    Attributes:
        tables: rows by name of the raw table, ordered by key; the columns of a row are its attributes.
        manual_sources: rows of `control.models.ManualSource`.
        source_switches: rows of `control.models.SourceSwitch`.
    """

    tables: Mapping[str, Sequence[Any]]
    manual_sources: Sequence[Any] = ()
    source_switches: Sequence[Any] = ()

    @property
    def revision(self) -> int:
        """Number of configuration writes so far."""
        revision: int = self.tables["control_revisions"][0].revision
        return revision


def read_snapshot(session: Session, shard: int, arrived: Collection[str] = ()) -> ControlSnapshot:
    """Read the configuration of a shard's tenants, in the session's one transaction.

    Args:
        session: of the control store.
        shard: the shard.
        arrived: tenants that are moving to the shard and have their rows there; they are included.
    """
    manual_sources = _rows(ManualSource).where(ManualSource.removed_at.is_(None)).order_by(ManualSource.source_key)
    switches = _rows(SourceSwitch).order_by(SourceSwitch.tenant_id, SourceSwitch.source_id)
    parameters = {"shard": shard, "arrived": list(arrived)}
    return ControlSnapshot(
        {name: session.execute(query, parameters).all() for name, query in TABLES.items()},
        session.execute(_in_shard(manual_sources, ManualSource.tenant_id), parameters).all(),
        session.execute(_in_shard(switches, SourceSwitch.tenant_id), parameters).all(),
    )


def read_history_snapshot(session: Session) -> ControlSnapshot:
    """Read the history requests of all shards, with tokens and wallets; the other tables are empty."""
    found = {name: session.execute(_QUERIES[name]).all() for name in ("control_subjects", "control_history_requests")}
    return ControlSnapshot(dict.fromkeys(TABLES, ()) | found)


def read_manual_prices(
    session: Session, shard: int, after_key: int, arrived: Collection[str] = (), new: Collection[str] = ()
) -> Sequence[Any]:
    """Return the manual prices of a shard's tenants with keys after this one, as rows for `control_manual_prices`.

    Keys follow the order of commits, because a writer counts the revision before it stores prices.

    Args:
        session: of the control store.
        shard: the shard.
        after_key: newest key that was copied.
        arrived: as of `read_snapshot`.
        new: tenants without any copied price; all prices of theirs are returned.
    """
    is_new = or_(ManualPrice.manual_price_key > after_key, SupportedPair.tenant_id.in_(list(new)))
    return session.execute(MANUAL_PRICES.where(is_new), {"shard": shard, "arrived": list(arrived)}).all()


def networks_with_subjects(session: Session, shard: int) -> set[str]:
    """Return the networks on which a tenant that the shard collects has a token or wallet, tracked or not."""
    return set(session.scalars(_networks(shard)))


def networks_with_open_windows(session: Session, shard: int) -> set[str]:
    """Return the networks on which a tenant that the shard collects tracks a token or wallet now."""
    tracked = (
        _networks(shard)
        .join(TrackingWindow, TrackingWindow.subject_key == Subject.subject_key)
        .where(TrackingWindow.closed_at.is_(None))
    )
    return set(session.scalars(tracked))


def _networks(shard: int) -> Select[Any]:
    """Select the networks of all tokens and wallets."""
    query = select(Ledger.network).join(Subject, Subject.ledger_id == Ledger.id).where(*_IS_THERE).distinct()
    return query.where(Subject.tenant_id.in_(tenants.ids_collected_in(shard)))
