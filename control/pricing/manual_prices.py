"""Rules of manual prices: entered one by one or in bulk, never changed; a new revision replaces one in effect."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from sqlalchemy import and_, exists, func, insert, or_, select
from sqlalchemy.orm import Session, aliased

from control import access, audit, fields, ids, quotas, revision
from control.access import Principal, Role
from control.clock import utc_now
from control.errors import Invalid, InvalidValues
from control.fields import DESCRIPTION_LENGTH
from control.inputs import ExactNumber, Schema, described, positive, text
from control.instants import pattern_of, read_instant_or_day, write_instant
from control.models import ManualPrice
from control.pages import After, Page, check_limit, cut_page
from control.pricing import supported_pairs
from control.pricing.decimals import positive_decimal
from control.pricing.definitions import PriceSource
from control.pricing.supported_pairs import SupportedPairRow

_PREFIX = "price_"
_FINER_THAN_MICROSECONDS = re.compile(r"\.\d{6}\d*[1-9]", re.ASCII)
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_END = datetime(2200, 1, 1, tzinfo=UTC)
"""A price may take effect in the future; one that would in two centuries is a slip of the pen."""


class ManualPriceCreate(Schema, frozen=True, kw_only=True):
    """A price to enter."""

    price: Annotated[ExactNumber, positive("The price.")]
    effective_from: Annotated[
        str,
        described(
            "Time from which the price is in effect: an instant, or a day (its start), UTC, from 1970 to 2199. A "
            "future time is allowed.",
            ["2026-01-31"],
            pattern=pattern_of(),
        ),
    ]
    note: Annotated[str | None, text(DESCRIPTION_LENGTH, "Free text.")] = None


@dataclass(frozen=True, slots=True)
class NewPrice:
    """A price that may be stored, with its canonical text."""

    price: str
    effective_from: datetime
    note: str | None


@dataclass(frozen=True, slots=True)
class ManualPriceRow:
    """A price as stored; `is_current` when no later revision is for the same instant."""

    id: str
    price: str
    effective_from: datetime
    revision: int
    is_current: bool
    note: str | None
    created_by: str
    created_at: datetime


def check_prices(entries: Sequence[ManualPriceCreate], *, is_bulk: bool) -> list[NewPrice]:
    """Read the prices of one request, in its order.

    Args:
        entries: the prices of the request.
        is_bulk: errors name rows, counted from 0 in `field` and from 1 in `detail`.

    Raises:
        InvalidValues: prices, instants or notes that break rules, and instants that are there twice; each with its row.
    """
    problems: list[Invalid] = []
    checked: list[NewPrice] = []
    rows: dict[datetime, int] = {}
    for index, entry in enumerate(entries):
        price, instant, found = _check_entry(entry)
        if instant is not None and rows.setdefault(instant, index) != index:
            both = (
                f"rows {rows[instant] + 1} and {index + 1} are both effective from {write_instant(instant)}; keep one"
            )
            found.append(Invalid("effectiveFrom", "repeated-instant", both))
        if is_bulk:
            found = [Invalid(f"{index}/{e.field}", e.code, f"row {index + 1}: {e.detail}") for e in found]
        problems += found
        if price is not None and instant is not None:
            checked.append(NewPrice(price, instant, entry.note))
    if problems:
        raise InvalidValues(problems)
    return checked


def enter(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    source_id: str,
    pair_id: str,
    prices: Sequence[NewPrice],
    now: datetime | None = None,
) -> list[ManualPriceRow]:
    """Store prices of a supported pair, all or none; a price for an instant that has one is a further revision of it.

    The source may be disabled: then it goes into no new pair, but prices of pairs that have it go on. A price for a
    future instant takes effect at that instant.

    Args:
        session: a write transaction.
        principal: who asks.
        definitions: the preconfigured sources.
        source_id: the manual source.
        pair_id: its supported pair.
        prices: at least one, from `check_prices`.
        now: time of creation; None is the clock's.

    Returns:
        The stored prices, in the given order.

    Raises:
        Denied: below operator.
        NotFound: the tenant has no such source, or it no such pair.
    """
    access.require(principal, Role.OPERATOR)
    pair = supported_pairs.get(session, principal.tenant_id, definitions, source_id, pair_id)
    supported_pairs.lock(session, pair)
    revisions = _newest_revisions(session, pair.supported_pair_key, [price.effective_from for price in prices])
    moment = now or utc_now()
    rows = [
        ManualPriceRow(
            id=ids.new_id(_PREFIX),
            price=price.price,
            effective_from=price.effective_from,
            revision=revisions.get(price.effective_from, 0) + 1,
            is_current=True,
            note=price.note,
            created_by=principal.key_id,
            created_at=moment,
        )
        for price in prices
    ]
    _record(session, principal, pair, rows, now)
    # Counted before the rows are stored: its lock lets one transaction at a time number them, so that keys follow the
    # order of commits, and the pipeline may read those behind the last one it knows.
    revision.bump(session, principal.tenant_id)
    quotas.admit_prices(session, principal.tenant_id, len(rows))
    session.execute(
        insert(ManualPrice),
        [
            {
                "id": row.id,
                "supported_pair_key": pair.supported_pair_key,
                "price": row.price,
                "effective_from": row.effective_from,
                "revision": row.revision,
                "note": row.note,
                "created_by": row.created_by,
                "created_at": row.created_at,
            }
            for row in rows
        ],
    )
    return rows


def list_page(
    session: Session,
    tenant_id: str,
    definitions: Mapping[str, PriceSource],
    source_id: str,
    pair_id: str,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    limit: int = 50,
    after: After | None = None,
) -> Page[ManualPriceRow]:
    """Return one page of the prices of a supported pair, all revisions, newest `effective_from` and revision first.

    Args:
        session: a transaction.
        tenant_id: whose.
        definitions: the preconfigured sources.
        source_id: the manual source.
        pair_id: its supported pair.
        start: least `effective_from`.
        end: `effective_from` is before it.
        limit: most rows, 1 to 1000.
        after: position of the page before.

    Raises:
        NotFound: the tenant has no such source, or it no such pair.
        Invalid: on 'limit' or 'cursor'.
    """
    pair = supported_pairs.get(session, tenant_id, definitions, source_id, pair_id)
    later = aliased(ManualPrice)
    is_replaced = exists().where(
        later.supported_pair_key == ManualPrice.supported_pair_key,
        later.effective_from == ManualPrice.effective_from,
        later.revision > ManualPrice.revision,
    )
    query = select(ManualPrice, is_replaced).where(ManualPrice.supported_pair_key == pair.supported_pair_key)
    if start is not None:
        query = query.where(ManualPrice.effective_from >= start)
    if end is not None:
        query = query.where(ManualPrice.effective_from < end)
    if after is not None:
        instant, number = _read_position(after)
        query = query.where(
            or_(
                ManualPrice.effective_from < instant,
                and_(ManualPrice.effective_from == instant, ManualPrice.revision < number),
            )
        )
    ordered = query.order_by(ManualPrice.effective_from.desc(), ManualPrice.revision.desc())
    found = session.execute(ordered.limit(check_limit(limit) + 1))
    return cut_page(
        [
            (_to_row(price, not replaced), After(price.effective_from.isoformat(), str(price.revision)))
            for price, replaced in found
        ],
        limit,
    )


def _check_entry(entry: ManualPriceCreate) -> tuple[str | None, datetime | None, list[Invalid]]:
    price: str | None = None
    instant: datetime | None = None
    problems: list[Invalid] = []
    try:
        price = positive_decimal("price", entry.price)
    except Invalid as error:
        problems.append(error)
    try:
        instant = _read_instant(entry.effective_from)
    except Invalid as error:
        problems.append(error)
    try:
        fields.check_optional_text("note", entry.note, DESCRIPTION_LENGTH, is_multiline=True)
    except Invalid as error:
        problems.append(error)
    return price, instant, problems


def _read_instant(text: str) -> datetime:
    field = "effectiveFrom"
    instant = read_instant_or_day(field, text)
    if _FINER_THAN_MICROSECONDS.search(text):
        raise Invalid(field, "too-precise", f"{field} is {text!r}; instants have at most 6 decimals of a second")
    if not _FIRST <= instant < _END:
        raise Invalid(field, "out-of-range", f"{field} is {text!r}; it must be from {_FIRST:%Y} to {_END.year - 1}")
    return instant


def _newest_revisions(session: Session, supported_pair_key: int, instants: Sequence[datetime]) -> dict[datetime, int]:
    """Newest revision of each stored instant in the span of some instants."""
    found = session.execute(
        select(ManualPrice.effective_from, func.max(ManualPrice.revision))
        .where(
            ManualPrice.supported_pair_key == supported_pair_key,
            ManualPrice.effective_from >= min(instants),
            ManualPrice.effective_from <= max(instants),
        )
        .group_by(ManualPrice.effective_from)
    )
    return dict(found.all())


def _read_position(after: After) -> tuple[datetime, int]:
    try:
        return datetime.fromisoformat(after.value), int(after.id)
    except ValueError as error:
        raise Invalid(
            "cursor", "malformed", "the cursor belongs to another list; start again without a cursor"
        ) from error


def _to_row(price: ManualPrice, is_current: bool) -> ManualPriceRow:
    return ManualPriceRow(
        id=price.id,
        price=price.price,
        effective_from=price.effective_from,
        revision=price.revision,
        is_current=is_current,
        note=price.note,
        created_by=price.created_by,
        created_at=price.created_at,
    )


def _record(
    session: Session,
    principal: Principal,
    pair: SupportedPairRow,
    rows: Sequence[ManualPriceRow],
    now: datetime | None,
) -> None:
    """Record one event for all prices of a request; as prices never change, the extent of many is enough."""
    entered: dict[str, Any] = {"count": len(rows), "firstId": rows[0].id, "lastId": rows[-1].id}
    instants = [row.effective_from for row in rows]
    entered |= {"firstEffectiveFrom": write_instant(min(instants)), "lastEffectiveFrom": write_instant(max(instants))}
    if len(rows) == 1:
        entered |= {"price": rows[0].price, "revision": rows[0].revision, "note": rows[0].note}
    audit.record(
        session,
        principal.tenant_id,
        principal.key_id,
        "manual-price.create",
        "supported-pair",
        pair.id,
        None,
        entered,
        now,
    )
