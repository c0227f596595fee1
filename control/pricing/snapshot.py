"""The pricing that tenants configured, in plain rows, for the pipeline; part of `control.snapshot`.

Manual prices, of which there may be many and which never change, are read apart: those that are new since a key.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from control.models import (
    ManualPrice,
    ManualSource,
    MappingSymbol,
    Operation,
    PairSource,
    PricedItem,
    PricePair,
    PriceReview,
    SourceSwitch,
    SupportedPair,
)
from control.operations import OperationKind, Status


@dataclass(frozen=True, slots=True)
class SnapshotPricedItem:
    """A priced item."""

    item_key: int
    tenant_id: str
    symbol: str
    name: str
    item_class: str


@dataclass(frozen=True, slots=True)
class SnapshotMappingSymbol:
    """The symbol of an item at a source."""

    item_key: int
    source_id: str
    symbol: str


@dataclass(frozen=True, slots=True)
class SnapshotManualSource:
    """A tenant's manual source."""

    source_id: str
    tenant_id: str
    name: str


@dataclass(frozen=True, slots=True)
class SnapshotSourceSwitch:
    """Whether a tenant enabled a source, manual or preconfigured, where it ever said so."""

    tenant_id: str
    source_id: str
    is_enabled: bool


@dataclass(frozen=True, slots=True)
class SnapshotPricePair:
    """A pair; items by key and by symbol; guards in percent, decimal text; None is no limit and no guard."""

    pair_key: int
    pair_id: str
    tenant_id: str
    priced_as_key: int
    priced_as: str
    priced_in_key: int
    priced_in: str
    price_type: str
    max_age_seconds: int | None
    allow_inverse: bool
    bridge_key: int | None
    bridge: str | None
    max_jump: str | None
    max_deviation: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SnapshotPairSource:
    """A source of a pair; position 0 is asked first."""

    pair_key: int
    position: int
    source_id: str


@dataclass(frozen=True, slots=True)
class SnapshotSupportedPair:
    """What a manual source has prices of; items by symbol."""

    supported_pair_key: int
    supported_pair_id: str
    source_id: str
    tenant_id: str
    priced_as: str
    priced_in: str
    price_type: str


@dataclass(frozen=True, slots=True)
class SnapshotManualPrice:
    """A price that was entered; decimal text."""

    manual_price_key: int
    price_id: str
    supported_pair_key: int
    price: str
    effective_from: datetime
    revision: int
    note: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SnapshotPriceReview:
    """An operator's word on a price that a guard stopped."""

    pair_key: int
    price_id: str
    decision: str


@dataclass(frozen=True, slots=True)
class SnapshotPriceDiscovery:
    """A price discovery, finished or not; `parameters` as `control.models.Operation` says."""

    operation_key: int
    pair_key: int
    from_text: str
    to_text: str
    window_size: str
    multiplier: str
    status: str
    is_cancelled: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PricingSnapshot:
    """The pricing of all tenants at one revision, without what was removed; each part ordered by its key."""

    items: tuple[SnapshotPricedItem, ...] = ()
    mapping_symbols: tuple[SnapshotMappingSymbol, ...] = ()
    manual_sources: tuple[SnapshotManualSource, ...] = ()
    source_switches: tuple[SnapshotSourceSwitch, ...] = ()
    pairs: tuple[SnapshotPricePair, ...] = ()
    pair_sources: tuple[SnapshotPairSource, ...] = ()
    supported_pairs: tuple[SnapshotSupportedPair, ...] = ()
    reviews: tuple[SnapshotPriceReview, ...] = ()
    discoveries: tuple[SnapshotPriceDiscovery, ...] = ()


def read_pricing(session: Session) -> PricingSnapshot:
    """Read the pricing of all tenants, in the session's one transaction."""
    priced_as, priced_in, bridge = aliased(PricedItem), aliased(PricedItem), aliased(PricedItem)
    return PricingSnapshot(
        items=to_rows(
            SnapshotPricedItem,
            session.execute(
                select(
                    PricedItem.item_key,
                    PricedItem.tenant_id,
                    PricedItem.symbol,
                    PricedItem.name,
                    PricedItem.item_class,
                )
                .where(PricedItem.removed_at.is_(None))
                .order_by(PricedItem.item_key)
            ),
        ),
        mapping_symbols=to_rows(
            SnapshotMappingSymbol,
            session.execute(
                select(MappingSymbol.item_key, MappingSymbol.source_id, MappingSymbol.symbol)
                .join(PricedItem, PricedItem.item_key == MappingSymbol.item_key)
                .where(PricedItem.removed_at.is_(None))
                .order_by(MappingSymbol.item_key, MappingSymbol.source_id)
            ),
        ),
        manual_sources=to_rows(
            SnapshotManualSource,
            session.execute(
                select(ManualSource.id, ManualSource.tenant_id, ManualSource.name)
                .where(ManualSource.removed_at.is_(None))
                .order_by(ManualSource.source_key)
            ),
        ),
        source_switches=to_rows(
            SnapshotSourceSwitch,
            session.execute(
                select(SourceSwitch.tenant_id, SourceSwitch.source_id, SourceSwitch.is_enabled).order_by(
                    SourceSwitch.tenant_id, SourceSwitch.source_id
                )
            ),
        ),
        pairs=to_rows(
            SnapshotPricePair,
            session.execute(
                select(
                    PricePair.pair_key,
                    PricePair.id,
                    PricePair.tenant_id,
                    priced_as.item_key,
                    priced_as.symbol,
                    priced_in.item_key,
                    priced_in.symbol,
                    PricePair.price_type,
                    PricePair.max_age_seconds,
                    PricePair.allow_inverse,
                    bridge.item_key,
                    bridge.symbol,
                    PricePair.max_jump,
                    PricePair.max_deviation,
                    PricePair.created_at,
                )
                .join(priced_as, priced_as.item_key == PricePair.priced_as_key)
                .join(priced_in, priced_in.item_key == PricePair.priced_in_key)
                .outerjoin(bridge, bridge.item_key == PricePair.bridge_key)
                .where(PricePair.removed_at.is_(None))
                .order_by(PricePair.pair_key)
            ),
        ),
        pair_sources=to_rows(
            SnapshotPairSource,
            session.execute(
                select(PairSource.pair_key, PairSource.position, PairSource.source_id)
                .join(PricePair, PricePair.pair_key == PairSource.pair_key)
                .where(PricePair.removed_at.is_(None))
                .order_by(PairSource.pair_key, PairSource.position)
            ),
        ),
        supported_pairs=to_rows(
            SnapshotSupportedPair,
            session.execute(
                select(
                    SupportedPair.supported_pair_key,
                    SupportedPair.id,
                    ManualSource.id,
                    SupportedPair.tenant_id,
                    priced_as.symbol,
                    priced_in.symbol,
                    SupportedPair.price_type,
                )
                .join(ManualSource, ManualSource.source_key == SupportedPair.source_key)
                .join(priced_as, priced_as.item_key == SupportedPair.priced_as_key)
                .join(priced_in, priced_in.item_key == SupportedPair.priced_in_key)
                .where(SupportedPair.removed_at.is_(None), ManualSource.removed_at.is_(None))
                .order_by(SupportedPair.supported_pair_key)
            ),
        ),
        reviews=to_rows(
            SnapshotPriceReview,
            session.execute(
                select(PriceReview.pair_key, PriceReview.price_id, PriceReview.decision)
                .join(PricePair, PricePair.pair_key == PriceReview.pair_key)
                .where(PricePair.removed_at.is_(None))
                .order_by(PriceReview.pair_key, PriceReview.price_id)
            ),
        ),
        discoveries=_read_discoveries(session),
    )


def read_manual_prices(session: Session, after_key: int) -> list[SnapshotManualPrice]:
    """Return the manual prices of all tenants that were entered after the one with this key, oldest first.

    Keys are in the order of commits, because who enters prices counts the revision first and so waits for others.
    """
    found = session.execute(
        select(
            ManualPrice.manual_price_key,
            ManualPrice.id,
            ManualPrice.supported_pair_key,
            ManualPrice.price,
            ManualPrice.effective_from,
            ManualPrice.revision,
            ManualPrice.note,
            ManualPrice.created_at,
        )
        .where(ManualPrice.manual_price_key > after_key)
        .order_by(ManualPrice.manual_price_key)
    )
    return [SnapshotManualPrice(*row) for row in found]


def _read_discoveries(session: Session) -> tuple[SnapshotPriceDiscovery, ...]:
    found = session.execute(
        select(PricePair.pair_key, Operation)
        .join(Operation, Operation.pair_key == PricePair.pair_key)
        .where(Operation.kind == OperationKind.PRICE_DISCOVERY, PricePair.removed_at.is_(None))
        .order_by(Operation.operation_key)
    )
    return tuple(
        SnapshotPriceDiscovery(
            operation_key=operation.operation_key,
            pair_key=pair_key,
            from_text=operation.parameters["from"],
            to_text=operation.parameters["to"],
            window_size=operation.parameters["windowSize"],
            multiplier=operation.parameters["multiplier"],
            status=operation.status,
            is_cancelled=operation.cancel_requested_at is not None or operation.status == Status.CANCELLED,
            created_at=operation.created_at,
        )
        for pair_key, operation in found
    )


def to_rows(row_type: Any, records: Iterable[Any]) -> tuple[Any, ...]:
    """Make a row of each record, whose columns are in the order of the row's fields."""
    return tuple(row_type(*record) for record in records)
