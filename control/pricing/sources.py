"""Rules of price sources: the preconfigured ones, and manual ones with the pairs that they support.

Preconfigured sources are defined in `control.pricing.definitions`; a tenant only switches them on and off.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, UnsetType
from sqlalchemy import Select, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control import access, audit, fields, ids
from control.access import Principal, Role
from control.changes import lock_one, record_change
from control.clock import utc_now
from control.errors import Conflict, NotFound
from control.fields import NAME_LENGTH
from control.inputs import Schema, line
from control.models import (
    ManualSource,
    MappingSymbol,
    PairSource,
    PricedItem,
    PricePair,
    SourceSwitch,
    SupportedPair,
)
from control.pages import After, Page, check_limit, cut_page
from control.pricing.definitions import PriceSource
from control.pricing.in_use import named
from control.pricing.price_types import PriceType

_PREFIX = "src_"


class PriceSourceCreate(Schema, frozen=True, kw_only=True):
    """A manual source to add."""

    name: Annotated[str, line(NAME_LENGTH, "Unique among your manual sources.", ["Fund desk"])]


class PriceSourcePatch(Schema, frozen=True, kw_only=True):
    """Changes to a manual source. A field that is left out stays the same."""

    name: Annotated[str, line(NAME_LENGTH, "Unique among your manual sources.")] | UnsetType = UNSET


class SourceKind(StrEnum):
    """Where a source's prices come from: the tenant's own entries, or a market that the pipeline asks."""

    MANUAL = "Manual"
    PRECONFIGURED = "Preconfigured"


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A price source as one tenant sees it.

    `price_types` are all that it can supply, `history_types` those with a past that discovery can ask for, and
    `granularities` the windows of that past, finest first. Key and times are None for a preconfigured source.
    """

    id: str
    name: str
    kind: SourceKind
    is_enabled: bool
    price_types: tuple[PriceType, ...]
    history_types: tuple[PriceType, ...]
    granularities: tuple[str, ...]
    source_key: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


def create(
    session: Session, principal: Principal, request: PriceSourceCreate, now: datetime | None = None
) -> SourceRow:
    """Store a manual source, disabled.

    Raises:
        Denied: below operator.
        Invalid: on 'name'.
        Conflict: the tenant has a manual source of this name; names its id.
    """
    access.require(principal, Role.OPERATOR)
    moment = now or utc_now()
    source = ManualSource(
        id=ids.new_id(_PREFIX),
        tenant_id=principal.tenant_id,
        name=fields.check_text("name", request.name, fields.NAME_LENGTH),
        created_at=moment,
        updated_at=moment,
    )
    try:
        with session.begin_nested():
            session.add(source)
    except IntegrityError as error:
        raise _duplicate(session, principal.tenant_id, request.name, error) from error
    row = _to_manual(source, is_enabled=False)
    after = _audited(row)
    record_change(session, principal, "price-source.create", "price-source", row.id, None, after, now, is_new=True)
    return row


def get(session: Session, tenant_id: str, definitions: Mapping[str, PriceSource], source_id: str) -> SourceRow:
    """Return one source, preconfigured or the tenant's own.

    Raises:
        NotFound: there is none with this id.
    """
    row = find(session, tenant_id, definitions, source_id)
    if row is None:
        raise NotFound("price source", source_id)
    return row


def find(
    session: Session,
    tenant_id: str,
    definitions: Mapping[str, PriceSource],
    source_id: str,
    *,
    is_kept: bool = False,
) -> SourceRow | None:
    """Return one source, preconfigured or the tenant's own, or None.

    With `is_kept` a manual one cannot be changed or removed until the transaction ends.
    """
    definition = definitions.get(source_id)
    if definition is not None:
        return _to_preconfigured(definition, _switches(session, tenant_id, [source_id]))
    if not ids.is_id(_PREFIX, source_id):
        return None
    query = _select(tenant_id).where(ManualSource.id == source_id)
    source = session.scalars(query.with_for_update(read=True) if is_kept else query).one_or_none()
    if source is None:
        return None
    return _to_manual(source, is_enabled=_switches(session, tenant_id, [source_id]).get(source_id, False))


def list_page(
    session: Session,
    tenant_id: str,
    definitions: Mapping[str, PriceSource],
    limit: int = 50,
    after: After | None = None,
) -> Page[SourceRow]:
    """Return one page of the sources: the preconfigured ones by id, then the tenant's own, oldest first.

    Raises:
        Invalid: on 'limit'.
    """
    most = check_limit(limit) + 1
    is_past = after is not None and after.value == SourceKind.MANUAL
    last = None if after is None else after.id
    preconfigured = sorted(key for key in definitions if not is_past and (last is None or key > last))[:most]
    query = _select(tenant_id)
    if is_past:
        query = query.where(ManualSource.id > last)
    manual = session.scalars(query.order_by(ManualSource.id).limit(most - len(preconfigured))).all()
    switches = _switches(session, tenant_id, [*preconfigured, *(source.id for source in manual)])
    rows = [_to_preconfigured(definitions[key], switches) for key in preconfigured]
    rows += [_to_manual(source, is_enabled=switches.get(source.id, False)) for source in manual]
    return cut_page([(row, After(row.kind.value, row.id)) for row in rows], limit)


def rename(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    source_id: str,
    request: PriceSourcePatch,
    now: datetime | None = None,
) -> SourceRow:
    """Change the name of a manual source. An unset name stays, and the stored name changes nothing.

    Raises:
        Denied: below operator.
        NotFound: the tenant has none such.
        Invalid: on 'name'.
        Conflict: it is preconfigured, or another manual source has the name.
    """
    access.require(principal, Role.OPERATOR)
    source = lock_manual(session, principal.tenant_id, definitions, source_id)
    before = get(session, principal.tenant_id, definitions, source_id)
    name = request.name
    if name is UNSET or fields.check_text("name", name, fields.NAME_LENGTH) == before.name:
        return before
    try:
        with session.begin_nested():
            source.name, source.updated_at = name, max(now or utc_now(), source.updated_at)
    except IntegrityError as error:
        raise _duplicate(session, principal.tenant_id, name, error) from error
    row = _to_manual(source, is_enabled=before.is_enabled)
    states = (_audited(before), _audited(row))
    record_change(session, principal, "price-source.update", "price-source", row.id, *states, now)
    return row


def set_enabled(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    source_id: str,
    *,
    enabled: bool,
    now: datetime | None = None,
) -> SourceRow:
    """Enable or disable a source for this tenant alone; asking for the state it is in changes nothing.

    A disabled source is not polled for the tenant and cannot go into new pairs; its stored prices are still used.

    Raises:
        Denied: below operator.
        NotFound: there is none with this id.
    """
    access.require(principal, Role.OPERATOR)
    before = find(session, principal.tenant_id, definitions, source_id, is_kept=True)
    if before is None:
        raise NotFound("price source", source_id)
    switch = _lock_switch(session, principal.tenant_id, source_id, before.is_enabled, now or utc_now())
    if switch.is_enabled != enabled:
        switch.is_enabled, switch.changed_at = enabled, max(now or utc_now(), switch.changed_at)
        session.flush()
        action: audit.Action = "price-source.enable" if enabled else "price-source.disable"
        old, new = {"enabled": not enabled}, {"enabled": enabled}
        record_change(session, principal, action, "price-source", source_id, old, new, now)
    return get(session, principal.tenant_id, definitions, source_id)


def remove(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    source_id: str,
    now: datetime | None = None,
) -> None:
    """Remove a manual source that nothing uses, with the pairs it supports; its name is free again.

    Its prices stay stored, but count no more and are not shown.

    Raises:
        Denied: below admin.
        NotFound: the tenant has none such.
        Conflict: it is preconfigured, a pair asks it, or an item is mapped to it.
    """
    access.require(principal, Role.ADMIN)
    source = lock_manual(session, principal.tenant_id, definitions, source_id)
    before = get(session, principal.tenant_id, definitions, source_id)
    users = [*_pairs_of(session, source_id), *_items_mapped_to(session, source_id)]
    if users:
        raise Conflict("source-in-use", f"{source.name!r} is used by {named(users)}; change them first", source_id)
    moment = max(now or utc_now(), source.updated_at)
    session.execute(
        update(SupportedPair)
        .where(SupportedPair.source_key == source.source_key, SupportedPair.removed_at.is_(None))
        .values(removed_at=moment)
    )
    source.removed_at = source.updated_at = moment
    record_change(session, principal, "price-source.remove", "price-source", source_id, _audited(before), None, now)


def lock_manual(
    session: Session, tenant_id: str, definitions: Mapping[str, PriceSource], source_id: str
) -> ManualSource:
    """Return a manual source for change; other writers of it wait until the transaction ends.

    Raises:
        NotFound: the tenant has no source with this id.
        Conflict: it is preconfigured.
    """
    if source_id in definitions:
        raise preconfigured(source_id, definitions[source_id].name)
    if not ids.is_id(_PREFIX, source_id):
        raise NotFound("price source", source_id)
    query = _select(tenant_id).where(ManualSource.id == source_id)
    return lock_one(session, query, "price source", source_id)


def is_manual(source_id: str) -> bool:
    """Say whether an id is one of a manual source, by its form alone."""
    return ids.is_id(_PREFIX, source_id)


def preconfigured(source_id: str, name: str) -> Conflict:
    """Return the error of asking a preconfigured source for what only manual ones have."""
    return Conflict(
        "preconfigured-source", f"{name} is preconfigured; this request is only for manual price sources", source_id
    )


def _select(tenant_id: str) -> Select[ManualSource]:
    return select(ManualSource).where(ManualSource.tenant_id == tenant_id, ManualSource.removed_at.is_(None))


def _lock_switch(session: Session, tenant_id: str, source_id: str, is_enabled: bool, now: datetime) -> SourceSwitch:
    """Return the tenant's switch of a source for change; one that is not there yet is made as it stands."""
    query = select(SourceSwitch).where(SourceSwitch.tenant_id == tenant_id, SourceSwitch.source_id == source_id)
    locking = query.with_for_update().execution_options(populate_existing=True)
    switch = session.scalars(locking).one_or_none()
    if switch is not None:
        return switch
    switch = SourceSwitch(tenant_id=tenant_id, source_id=source_id, is_enabled=is_enabled, changed_at=now)
    try:
        with session.begin_nested():
            session.add(switch)
    except IntegrityError:
        # Another writer was quicker: then the switch is theirs.
        return session.scalars(locking).one()
    return switch


def _switches(session: Session, tenant_id: str, source_ids: Iterable[str]) -> dict[str, bool]:
    found = session.execute(
        select(SourceSwitch.source_id, SourceSwitch.is_enabled).where(
            SourceSwitch.tenant_id == tenant_id, SourceSwitch.source_id.in_(list(source_ids))
        )
    )
    return dict(found.all())


def _pairs_of(session: Session, source_id: str) -> list[str]:
    query = (
        select(PricePair.id)
        .join(PairSource, PairSource.pair_key == PricePair.pair_key)
        .where(PairSource.source_id == source_id, PricePair.removed_at.is_(None))
    )
    return list(session.scalars(query.order_by(PricePair.id)))


def _items_mapped_to(session: Session, source_id: str) -> list[str]:
    query = (
        select(PricedItem.symbol)
        .join(MappingSymbol, MappingSymbol.item_key == PricedItem.item_key)
        .where(MappingSymbol.source_id == source_id, PricedItem.removed_at.is_(None))
    )
    return [f"priced item {symbol!r}" for symbol in session.scalars(query.order_by(PricedItem.id))]


def _duplicate(session: Session, tenant_id: str, name: str, error: IntegrityError) -> Exception:
    existing = session.scalars(_select(tenant_id).where(ManualSource.name == name)).one_or_none()
    if existing is None:
        return error
    detail = f"a manual source {name!r} already exists: {existing.id}"
    return Conflict("duplicate-source", detail, existing.id, fields=["name"])


def _to_manual(source: ManualSource, *, is_enabled: bool) -> SourceRow:
    return SourceRow(
        id=source.id,
        name=source.name,
        kind=SourceKind.MANUAL,
        is_enabled=is_enabled,
        price_types=tuple(PriceType),
        history_types=(),
        granularities=(),
        source_key=source.source_key,
        created_at=source.created_at,
        updated_at=source.updated_at,
    )


def _to_preconfigured(definition: PriceSource, switches: Mapping[str, bool]) -> SourceRow:
    supplied = {*definition.price_types, *definition.history_types}
    return SourceRow(
        id=definition.id,
        name=definition.name,
        kind=SourceKind.PRECONFIGURED,
        is_enabled=switches.get(definition.id, True),
        price_types=tuple(kind for kind in PriceType if kind in supplied),
        history_types=tuple(kind for kind in PriceType if kind in definition.history_types),
        granularities=tuple(definition.granularities),
    )


def _audited(source: SourceRow) -> dict[str, object]:
    return {"name": source.name, "enabled": source.is_enabled}
