"""Rules that tokens and wallets share: identity on a ledger, lists, tracking windows, change and removal.

`control.tokens` and `control.wallets`, which callers use, have the rules of one kind.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, NamedTuple

from msgspec import UNSET, UnsetType
from sqlalchemy import ColumnElement, Row, Select, and_, exists, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from control import access, audit, fields, ids, ledgers, quotas
from control.access import Principal, Role
from control.cancellation import cancel_unfinished
from control.changes import lock_one, record_change
from control.clock import utc_now, whole_second
from control.errors import Conflict, Invalid, NotFound, shortened
from control.inputs import ADDRESS, LEDGER, WALLET, Address, Schema, described, given, line
from control.models import Ledger, NetworkInUse, PricedItem, PricePair, Subject, TrackingWindow
from control.networks.addresses import InvalidAddress, WalletAddress
from control.networks.definitions import NATIVE, Network
from control.networks.families import FAMILIES, codec_for
from control.networks.pins import definition_in_use
from control.networks.private_keys import refuse_private_keys
from control.pages import After, Page, check_limit, cut_page

_BYTE_ORDER = {"postgresql": "C", "sqlite": "BINARY"}
"""Collations that sort texts by code point, so that pages have one order on every database and locale."""


_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


class Kind(StrEnum):
    """The kinds of subjects."""

    TOKEN = "token"
    WALLET = "wallet"


_PREFIXES = {Kind.TOKEN: "tok_", Kind.WALLET: "wal_"}


class _Actions(NamedTuple):
    create: audit.Action
    update: audit.Action
    tracking: audit.Action
    remove: audit.Action


_ACTIONS = {
    Kind.TOKEN: _Actions("token.create", "token.update", "token.tracking", "token.remove"),
    Kind.WALLET: _Actions("wallet.create", "wallet.update", "wallet.tracking", "wallet.remove"),
}


class TokenCreate(Schema, frozen=True, kw_only=True):
    """A token to add; tracking starts disabled."""

    ledger: Annotated[str, described("Name or id of the ledger.", ["ethereum-main"], **LEDGER)]
    symbol: Annotated[str, line(fields.SYMBOL_LENGTH, "Symbol of the token.", ["USDC"])]
    ledger_id: Annotated[
        Address, described("Address of the token's contract, in any form that the network accepts.", **ADDRESS)
    ]
    external_id: Annotated[str | None, line(fields.EXTERNAL_ID_LENGTH, "Your own identifier.")] = None
    name: Annotated[str | None, line(fields.NAME_LENGTH, "Display name.")] = None


class TokenPatch(Schema, frozen=True, kw_only=True):
    """Changes to a token.

    A field that is left out stays the same; null deletes its value. Ledger and address are fixed.
    """

    symbol: Annotated[str, line(fields.SYMBOL_LENGTH, "Symbol of the token.", ["USDC"])] | UnsetType = UNSET
    external_id: Annotated[str | None, line(fields.EXTERNAL_ID_LENGTH, "Your own identifier.")] | UnsetType = UNSET
    name: Annotated[str | None, line(fields.NAME_LENGTH, "Display name.")] | UnsetType = UNSET


class WalletCreate(Schema, frozen=True, kw_only=True):
    """A wallet to add; tracking starts disabled."""

    ledger: Annotated[str, described("Name or id of the ledger.", ["ethereum-main"], **LEDGER)]
    ledger_id: Annotated[
        Address,
        described(
            "Address of the wallet, in any form that the network accepts. Networks with wallets of keys also accept "
            "an output descriptor or an extended public key. Never send a private key.",
            **WALLET,
        ),
    ]
    external_id: Annotated[str | None, line(fields.EXTERNAL_ID_LENGTH, "Your own identifier.")] = None
    name: Annotated[str | None, line(fields.NAME_LENGTH, "Display name.")] = None


class WalletPatch(Schema, frozen=True, kw_only=True):
    """Changes to a wallet.

    A field that is left out stays the same; null deletes its value. Ledger and address are fixed.
    """

    external_id: Annotated[str | None, line(fields.EXTERNAL_ID_LENGTH, "Your own identifier.")] | UnsetType = UNSET
    name: Annotated[str | None, line(fields.NAME_LENGTH, "Display name.")] | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class SubjectRow:
    """A token or wallet as stored, with its ledger; `address` in stored form, `symbol` None for wallets.

    `shown_as` is the descriptor with shortened keys of a wallet of keys, else None.

    The pair with its symbols is that of a linked token, else None.
    """

    subject_key: int
    id: str
    kind: Kind
    tenant_id: str
    ledger_id: str
    ledger_name: str
    network: str
    family: str
    address: str
    shown_as: str | None
    symbol: str | None
    name: str | None
    external_id: str | None
    is_tracked: bool
    pair_key: int | None
    pair_id: str | None
    priced_as: str | None
    priced_in: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def tracking_status(self) -> str:
        """'enabled' while a window is open, else 'disabled'."""
        return "enabled" if self.is_tracked else "disabled"

    @property
    def presented_address(self) -> str:
        """The address in the form that answers show."""
        return self.shown_as or codec_for(self.family).present(self.address)

    def present(self, address: str) -> str:
        """Return the form in which answers show a stored address of the same network."""
        return self.presented_address if address == self.address else codec_for(self.family).present(address)


@dataclass(frozen=True, slots=True)
class Window:
    """A tracking window [opened_at, closed_at) in whole seconds; open while `closed_at` is None."""

    window_key: int
    opened_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class SubjectFilters:
    """Conditions of a list, all of which must hold; None is no condition.

    `ledger` is a name or id. `ledger_id` is an address in any accepted form; for wallets also keys in any spelling, or
    the shown form with shortened keys. `q` a part of symbol, name, external id or
    address in any case; the others must be equal.
    """

    ledger: str | None = None
    ledger_id: str | None = None
    symbol: str | None = None
    external_id: str | None = None
    tracking_status: str | None = None
    q: str | None = None


def create(
    session: Session,
    principal: Principal,
    networks: Mapping[str, Network],
    kind: Kind,
    request: TokenCreate | WalletCreate,
    now: datetime | None = None,
) -> SubjectRow:
    """Store a subject, not tracked.

    Args:
        session: a write transaction.
        principal: who asks.
        networks: the definitions, by name.
        kind: token or wallet.
        request: the subject; its address may have any form that the network accepts.
        now: time of creation; None is the clock's.

    Raises:
        Denied: below operator.
        Invalid: on 'ledger', 'ledgerId', 'symbol', 'externalId' or 'name'.
        Conflict: the ledger has a subject of this kind and address (names its id); its network is no longer defined or
            has changed; or a quota is exceeded.
    """
    access.require(principal, Role.OPERATOR)
    _refuse_private_keys(request.ledger_id)
    names = _check_names(given(request))
    found = ledgers.find(session, principal.tenant_id, request.ledger, is_kept=True)
    if found is None:
        raise Invalid(
            "ledger",
            "unknown-ledger",
            f"there is no ledger {shortened(request.ledger)!r}; create it, or use the name or id of an existing one",
        )
    if kind is Kind.TOKEN and request.ledger_id.casefold() == NATIVE:
        raise Invalid(
            "ledgerId",
            "native-asset",
            "the native asset of a network is not a token; create a wallet to see its balance",
        )
    network = definition_in_use(session, networks, found.network)
    if kind is Kind.TOKEN and not codec_for(network.family).has_tokens:
        raise Invalid(
            "ledgerId",
            "no-tokens",
            f"network {network.name!r} has no tokens, only its native asset; create a wallet to see its balance",
        )
    try:
        if kind is Kind.WALLET:
            given_address = network.parse_wallet(request.ledger_id)
        else:
            given_address = WalletAddress(network.parse_address(request.ledger_id))
    except InvalidAddress as error:
        raise Invalid("ledgerId", "invalid-address", str(error)) from error
    address, shown_as = given_address.address, given_address.shown_as
    moment = now or utc_now()
    subject = Subject(
        id=ids.new_id(_PREFIXES[kind]),
        kind=kind,
        tenant_id=principal.tenant_id,
        ledger_id=found.id,
        address=address,
        descriptor=given_address.descriptor,
        shown_as=shown_as,
        search_text=_search_text(names.get("symbol"), names["name"], names["external_id"], shown_as or address),
        **names,
        created_at=moment,
        updated_at=moment,
    )
    try:
        with session.begin_nested():
            session.add(subject)
    except IntegrityError as error:
        existing = session.execute(
            select(Subject.id, Subject.shown_as).where(
                Subject.ledger_id == found.id,
                Subject.kind == kind,
                Subject.address == address,
                Subject.removed_at.is_(None),
            )
        ).one_or_none()
        if existing is None:
            raise
        shown = existing.shown_as or codec_for(network.family).present(address)
        raise Conflict(
            f"duplicate-{kind}",
            f"ledger {found.name!r} already has {kind} {shown}, as {existing.id}",
            existing.id,
            fields=["ledgerId"],
        ) from error
    row = get(session, principal.tenant_id, kind, subject.id)
    record_change(session, principal, _ACTIONS[kind].create, kind.value, row.id, None, _audited(row), now, is_new=True)
    if subject.descriptor is not None:
        quotas.admit_scripts(session, principal.tenant_id)
    return row


def get(session: Session, tenant_id: str, kind: Kind, subject_id: str) -> SubjectRow:
    """Return one subject of the tenant.

    Raises:
        NotFound: the tenant has none of this kind and id.
    """
    if not ids.is_id(_PREFIXES[kind], subject_id):
        raise NotFound(kind, subject_id)
    row = session.execute(_select_rows(tenant_id, kind).where(Subject.id == subject_id)).one_or_none()
    if row is None:
        raise NotFound(kind, subject_id)
    return _to_row(row)


def list_page(
    session: Session,
    tenant_id: str,
    networks: Mapping[str, Network],
    kind: Kind,
    filters: SubjectFilters,
    *,
    sort: str,
    limit: int,
    after: After | None,
) -> Page[SubjectRow]:
    """Return one page of the tenant's subjects of a kind.

    Args:
        session: a transaction.
        tenant_id: whose.
        networks: the definitions, by name; an address in a filter also finds their canonical forms of it.
        kind: token or wallet.
        filters: conditions; see there.
        sort: createdAt, name or (tokens) symbol, descending with a leading '-'. Texts sort by code point, a missing
            name first; equal ones by id.
        limit: most rows, 1 to 1000.
        after: position of the page before, of a list with the same sort.

    Raises:
        Invalid: on 'sort', 'limit', 'cursor', or a filter by its JSON name.
    """
    key = _sort_key(session, kind, sort.removeprefix("-"))
    is_descending = sort.startswith("-")
    query = _apply_filters(_select_rows(tenant_id, kind), networks, kind, filters)
    if after is not None:
        query = query.where(_is_after(key, after, is_descending))
    order = (key.desc(), Subject.id.desc()) if is_descending else (key.asc(), Subject.id.asc())
    rows = [_to_row(row) for row in session.execute(query.order_by(*order).limit(check_limit(limit) + 1))]
    return cut_page([(row, After(_sort_value(row, sort.removeprefix("-")), row.id)) for row in rows], limit)


def list_all(
    session: Session, tenant_id: str, networks: Mapping[str, Network], kind: Kind, filters: SubjectFilters
) -> list[SubjectRow]:
    """Return the tenant's subjects of a kind, oldest first; filters as `list_page`."""
    query = _apply_filters(_select_rows(tenant_id, kind), networks, kind, filters)
    return [_to_row(row) for row in session.execute(query.order_by(Subject.created_at, Subject.id))]


def set_tracking(
    session: Session,
    principal: Principal,
    subject: SubjectRow,
    enabled: bool,
    now: datetime | None = None,
    is_fungible: bool | None = None,
) -> SubjectRow:
    """Open or close the tracking window of a subject; asking for the state it is in changes nothing.

    Times are cut to the second. Windows neither overlap nor run backwards, even if the clock does: a window opens no
    earlier than the last one closed. One opened and closed within a second is empty. If the clock was ahead, one that
    closes before it opened is deleted, and one with an end to come ends where the next one opens.

    Args:
        session: a write transaction.
        principal: who asks.
        subject: the subject, from `get`.
        enabled: the state asked for.
        now: the moment; None is the clock's.
        is_fungible: False when the contract is known to be no fungible token; None when that is not known.

    Raises:
        Denied: below admin.
        NotFound: removed meanwhile, or another tenant's.
        Invalid: on 'trackingStatus', enabling a contract that is not fungible.
    """
    access.require(principal, Role.ADMIN)
    locked = lock(session, principal.tenant_id, subject)
    newest = session.scalars(
        select(TrackingWindow)
        .where(TrackingWindow.subject_key == locked.subject_key)
        .order_by(TrackingWindow.window_key.desc())
        .limit(1)
    ).one_or_none()
    moment = now or utc_now()
    second = whole_second(moment)
    is_open = newest is not None and newest.closed_at is None
    if enabled != is_open:
        if enabled:
            if is_fungible is False:
                raise Invalid(
                    "trackingStatus",
                    "not-fungible",
                    "the contract is not a fungible token, so there are no amounts to track",
                )
            opened_at = second
            if newest is not None and newest.closed_at is not None:
                newest.closed_at = max(min(second, newest.closed_at), newest.opened_at)
                opened_at = max(second, newest.closed_at)
            session.add(TrackingWindow(subject_key=locked.subject_key, opened_at=opened_at, opened_by=principal.key_id))
        elif newest is not None and second < newest.opened_at:
            session.delete(newest)
        elif newest is not None:
            newest.closed_at = second
        locked.updated_at = max(moment, locked.updated_at)
        action = _ACTIONS[subject.kind].tracking
        before, after = ({"trackingStatus": "enabled" if state else "disabled"} for state in (is_open, enabled))
        record_change(session, principal, action, subject.kind.value, subject.id, before, after, now)
    return get(session, principal.tenant_id, subject.kind, subject.id)


def update(
    session: Session,
    principal: Principal,
    subject: SubjectRow,
    request: TokenPatch | WalletPatch,
    now: datetime | None = None,
) -> SubjectRow:
    """Change the names of a subject. Unset fields stay, and stored values change nothing.

    Args:
        session: a write transaction.
        principal: who asks.
        subject: the subject, from `get`.
        request: the new names; None deletes one.
        now: the moment; None is the clock's.

    Raises:
        Denied: below operator.
        NotFound: removed meanwhile, or another tenant's.
        Invalid: on 'symbol', 'externalId' or 'name'.
    """
    access.require(principal, Role.OPERATOR)
    locked = lock(session, principal.tenant_id, subject)
    before = get(session, principal.tenant_id, subject.kind, subject.id)
    for column, text in _check_names(given(request)).items():
        setattr(locked, column, text)
    if (locked.symbol, locked.name, locked.external_id) == (before.symbol, before.name, before.external_id):
        return before
    locked.search_text = _search_text(locked.symbol, locked.name, locked.external_id, locked.shown_as or locked.address)
    locked.updated_at = max(now or utc_now(), locked.updated_at)
    session.flush()
    after = get(session, principal.tenant_id, subject.kind, subject.id)
    action, states = _ACTIONS[subject.kind].update, (_audited(before), _audited(after))
    record_change(session, principal, action, subject.kind.value, subject.id, *states, now)
    return after


def remove(session: Session, principal: Principal, subject: SubjectRow, now: datetime | None = None) -> None:
    """Remove a subject: its open window closes, its unfinished operations end, its identity is free.

    Its rows and its audit stay; nothing shows or collects it any more.

    Raises:
        Denied: below admin.
        NotFound: removed already, or another tenant's.
    """
    access.require(principal, Role.ADMIN)
    locked = lock(session, principal.tenant_id, subject)
    before = get(session, principal.tenant_id, subject.kind, subject.id)
    moment = now or utc_now()
    open_window = session.scalars(
        select(TrackingWindow).where(
            TrackingWindow.subject_key == locked.subject_key, TrackingWindow.closed_at.is_(None)
        )
    ).one_or_none()
    if open_window is not None:
        open_window.closed_at = max(whole_second(moment), open_window.opened_at)
    cancel_unfinished(session, "subject_key", locked.subject_key, moment)
    locked.removed_at = locked.updated_at = max(moment, locked.updated_at)
    action = _ACTIONS[subject.kind].remove
    record_change(session, principal, action, subject.kind.value, subject.id, _audited(before), None, now)


def lock(session: Session, tenant_id: str, subject: SubjectRow) -> Subject:
    """Return the stored subject for change; other writers of it wait until the transaction ends.

    Raises:
        NotFound: removed meanwhile, or another tenant's.
    """
    is_there = (
        Subject.subject_key == subject.subject_key,
        Subject.tenant_id == tenant_id,
        Subject.removed_at.is_(None),
    )
    return lock_one(session, select(Subject).where(*is_there), subject.kind, subject.id)


def windows(session: Session, subject_key: int) -> list[Window]:
    """Return the tracking windows of a subject, oldest first, empty ones too."""
    rows = session.execute(
        select(TrackingWindow.window_key, TrackingWindow.opened_at, TrackingWindow.closed_at)
        .where(TrackingWindow.subject_key == subject_key)
        .order_by(TrackingWindow.window_key)
    )
    return [Window(*row) for row in rows]


def _select_rows(tenant_id: str, kind: Kind) -> Select[Any]:
    return _select_subjects().where(Subject.tenant_id == tenant_id, Subject.kind == kind)


@cache
def _select_subjects() -> Select[Any]:
    """Columns named as the fields of SubjectRow; composing them takes longer than the query."""
    priced_as, priced_in = aliased(PricedItem), aliased(PricedItem)
    columns: list[ColumnElement[Any] | InstrumentedAttribute[Any]] = [
        Subject.subject_key,
        Subject.id,
        Subject.kind,
        Subject.tenant_id,
        Subject.ledger_id,
        Ledger.name.label("ledger_name"),
        Ledger.network,
        NetworkInUse.family,
        Subject.address,
        Subject.shown_as,
        Subject.symbol,
        Subject.name,
        Subject.external_id,
        has_open_window().label("is_tracked"),
        Subject.pair_key,
        PricePair.id.label("pair_id"),
        priced_as.symbol.label("priced_as"),
        priced_in.symbol.label("priced_in"),
        Subject.created_at,
        Subject.updated_at,
    ]
    return (
        select(*columns)
        .join(Ledger, Ledger.id == Subject.ledger_id)
        .join(NetworkInUse, NetworkInUse.name == Ledger.network)
        .outerjoin(PricePair, PricePair.pair_key == Subject.pair_key)
        .outerjoin(priced_as, priced_as.item_key == PricePair.priced_as_key)
        .outerjoin(priced_in, priced_in.item_key == PricePair.priced_in_key)
        .where(Subject.removed_at.is_(None))
    )


def _check_names(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the names that a request sets, by column.

    Raises:
        Invalid: on 'symbol', 'externalId' or 'name'.
    """
    names: dict[str, str | None] = {}
    if "symbol" in values:
        names["symbol"] = fields.check_text("symbol", values["symbol"], fields.SYMBOL_LENGTH)
    for column, field, most in (
        ("external_id", "externalId", fields.EXTERNAL_ID_LENGTH),
        ("name", "name", fields.NAME_LENGTH),
    ):
        if column in values:
            names[column] = fields.check_optional_text(field, values[column], most)
    return names


def _audited(subject: SubjectRow) -> dict[str, str | None]:
    symbol = {"symbol": subject.symbol} if subject.kind is Kind.TOKEN else {}
    return {
        "ledger": subject.ledger_name,
        "ledgerId": subject.presented_address,
        **symbol,
        "name": subject.name,
        "externalId": subject.external_id,
        "trackingStatus": subject.tracking_status,
    }


def _search_text(symbol: str | None, name: str | None, external_id: str | None, shown: str) -> str:
    return "\n".join(part for part in (symbol, name, external_id, shown) if part).casefold()


def _to_row(record: Row[Any]) -> SubjectRow:
    return SubjectRow(**{**record._mapping, "kind": Kind(record.kind)})


def has_open_window() -> ColumnElement[bool]:
    """Return the condition that a subject is tracked now."""
    return exists().where(TrackingWindow.subject_key == Subject.subject_key, TrackingWindow.closed_at.is_(None))


def _apply_filters(
    query: Select[Any], networks: Mapping[str, Network], kind: Kind, filters: SubjectFilters
) -> Select[Any]:
    if filters.ledger is not None:
        ledger = fields.check_filter("ledger", filters.ledger)
        query = query.where(or_(Ledger.name == ledger, Ledger.id == ledger))
    if filters.ledger_id is not None:
        query = query.where(_has_ledger_id(networks, kind, filters.ledger_id))
    if filters.symbol is not None:
        query = query.where(Subject.symbol == fields.check_filter("symbol", filters.symbol))
    if filters.external_id is not None:
        query = query.where(Subject.external_id == fields.check_filter("externalId", filters.external_id))
    if filters.tracking_status is not None:
        if filters.tracking_status not in ("enabled", "disabled"):
            raise Invalid("trackingStatus", "unknown-status", "trackingStatus must be enabled or disabled")
        query = query.where(has_open_window() if filters.tracking_status == "enabled" else ~has_open_window())
    if filters.q is not None:
        query = query.where(
            Subject.search_text.contains(fields.check_filter("q", filters.q).casefold(), autoescape=True)
        )
    return query


def _refuse_private_keys(ledger_id: str) -> None:
    try:
        refuse_private_keys(ledger_id)
    except InvalidAddress as error:
        raise Invalid("ledgerId", "invalid-address", str(error)) from error


def _has_ledger_id(networks: Mapping[str, Network], kind: Kind, text: str) -> ColumnElement[bool]:
    _refuse_private_keys(text)
    # No address has this character, and each shown form of keys has it.
    if kind is Kind.WALLET and _ELLIPSIS in text and text.isprintable():
        return Subject.shown_as == text
    return Subject.address.in_(_addresses(networks, kind, text))


def _addresses(networks: Mapping[str, Network], kind: Kind, text: str) -> set[str]:
    """Return the stored forms that an address may have: its family's, and those of the networks that accept it."""
    stored: set[str] = set()
    problems: list[str] = []
    for family in FAMILIES:
        try:
            stored.add(codec_for(family).parse(text))
        except InvalidAddress as error:
            problems.append(str(error))
    of_keys: list[str] = []
    for network in networks.values():
        # The family's error says the same, or the address is valid on other networks only.
        with suppress(InvalidAddress):
            stored.add(network.parse_address(text))
        try:
            if kind is Kind.WALLET and network.parse_keys(text) is not None:
                stored.add(network.parse_wallet(text).address)
        except InvalidAddress as error:
            of_keys.append(str(error))
    if not stored:
        raise Invalid("ledgerId", "invalid-address", "; ".join(dict.fromkeys(of_keys or problems)))
    return stored


def _sort_key(session: Session, kind: Kind, key: str) -> ColumnElement[Any] | InstrumentedAttribute[Any]:
    if key == "createdAt":
        return Subject.created_at
    collation = _BYTE_ORDER[session.get_bind().dialect.name]
    if key == "name":
        return func.coalesce(Subject.name, "").collate(collation)
    if key == "symbol" and kind is Kind.TOKEN:
        return func.coalesce(Subject.symbol, "").collate(collation)
    known = "createdAt, name, symbol" if kind is Kind.TOKEN else "createdAt, name"
    raise Invalid("sort", "unknown-sort", f"sort must be one of {known}, with '-' in front for descending order")


def _sort_value(row: SubjectRow, key: str) -> str:
    if key == "createdAt":
        return row.created_at.isoformat()
    return (row.name if key == "name" else row.symbol) or ""


def _is_after(key: Any, after: After, is_descending: bool) -> ColumnElement[bool]:
    value: datetime | str = after.value
    if key is Subject.created_at:
        try:
            value = datetime.fromisoformat(after.value)
        except ValueError as error:
            raise Invalid(
                "cursor", "malformed", "the cursor belongs to a list with another sort; start again without a cursor"
            ) from error
    if is_descending:
        return or_(key < value, and_(key == value, Subject.id < after.id))
    return or_(key > value, and_(key == value, Subject.id > after.id))
