"""Rules of links: which pair a token is valued by. Values are in USD, so only pairs priced in it can be linked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any, NamedTuple

from sqlalchemy import Select, bindparam, select
from sqlalchemy.orm import Session, aliased

from control import access, audit, subjects
from control.access import Principal, Role
from control.changes import record_change
from control.clock import utc_now
from control.errors import Conflict, Invalid, NotFound, PairChoice
from control.inputs import ITEM, PAIR_ID, Schema, described
from control.models import Ledger, PricedItem, PricePair, Subject
from control.networks.definitions import Network
from control.pricing import items, pairs
from control.pricing.pairs import DEFAULT_PRICED_IN, PairRow
from control.subjects import SubjectRow

_TYPES_IN_ORDER = ("Market", "Trade", "NAV", "Bid", "Ask")
"""Of a symbol's USD pairs the first of these types values a common token."""


class PricedAsPut(Schema, frozen=True, kw_only=True):
    """The symbol that gives a token its USD price."""

    priced_as: Annotated[str, described("Symbol of a priced item.", ["BTC"], **ITEM)]
    pair_id: Annotated[
        str | None,
        described("`pair_...`; needed if the symbol has several USD pairs, of different price types.", **PAIR_ID),
    ] = None


class LinkedToken(NamedTuple):
    """A token of the tenant with an explicit link."""

    subject_key: int
    ledger_id: str
    network: str
    address: str
    pair_key: int


class UsdPair(NamedTuple):
    """A pair of the tenant that is priced in USD."""

    pair_key: int
    priced_as: str
    price_type: str


@dataclass(frozen=True, slots=True)
class LinksInForce:
    """The links of a tenant as configured now, by the rule of `marts.token_pairs`, which has those of one version."""

    networks: Mapping[str, Network]
    tokens: Sequence[LinkedToken]
    pairs: Sequence[UsdPair]

    def of_wallet(self, wallet: SubjectRow) -> dict[str, int]:
        """Return the pairs that value a wallet's assets, by stored address of the asset.

        Of linked tokens of one contract the one on the wallet's own ledger counts, else the first that was added.
        Common tokens without a linked token take the USD pair of their symbol.
        """
        network = self.networks.get(wallet.network)
        by_symbol = pairs_by_symbol(self.pairs)
        common = {} if network is None else network.common_symbols
        found = {address: by_symbol[symbol] for address, symbol in common.items() if symbol in by_symbol}
        linked = [token for token in self.tokens if token.network == wallet.network]
        # The last one stays.
        linked.sort(key=lambda token: (token.ledger_id == wallet.ledger_id, -token.subject_key))
        return found | {token.address: token.pair_key for token in linked}


def pairs_by_symbol(pairs: Sequence[UsdPair]) -> dict[str, int]:
    """Return the pair of each symbol that values common tokens."""
    # The last one stays.
    ordered = sorted(pairs, key=lambda pair: _TYPES_IN_ORDER.index(pair.price_type), reverse=True)
    return {pair.priced_as: pair.pair_key for pair in ordered}


def read_in_force(session: Session, tenant_id: str, networks: Mapping[str, Network]) -> LinksInForce:
    """Return the links of a tenant as configured now; `networks` are the definitions."""
    parameters = {"tenant_id": tenant_id, "currency": DEFAULT_PRICED_IN}
    return LinksInForce(
        networks,
        [LinkedToken(**row._mapping) for row in session.execute(_select_linked_tokens(), parameters)],
        [UsdPair(**row._mapping) for row in session.execute(_select_usd_pairs(), parameters)],
    )


@cache
def _select_linked_tokens() -> Select[Any]:
    own: tuple[Any, ...] = (Subject.subject_key, Subject.ledger_id, Subject.address, Subject.pair_key)
    return (
        select(*own, Ledger.network)
        .join(Ledger, Ledger.id == Subject.ledger_id)
        .where(
            Subject.tenant_id == bindparam("tenant_id"),
            Subject.kind == subjects.Kind.TOKEN,
            Subject.pair_key.is_not(None),
            Subject.removed_at.is_(None),
        )
    )


@cache
def _select_usd_pairs() -> Select[Any]:
    priced_as, priced_in = aliased(PricedItem), aliased(PricedItem)
    columns: tuple[Any, ...] = (PricePair.pair_key, priced_as.symbol.label("priced_as"), PricePair.price_type)
    return (
        select(*columns)
        .join(priced_as, priced_as.item_key == PricePair.priced_as_key)
        .join(priced_in, priced_in.item_key == PricePair.priced_in_key)
        .where(
            PricePair.tenant_id == bindparam("tenant_id"),
            PricePair.removed_at.is_(None),
            priced_in.symbol == bindparam("currency"),
        )
    )


def link(
    session: Session,
    principal: Principal,
    token: SubjectRow,
    request: PricedAsPut,
    now: datetime | None = None,
) -> SubjectRow:
    """Link a token to the USD pair of a symbol, in place of the one it was linked to; again changes nothing.

    Args:
        session: a write transaction.
        principal: who asks.
        token: the token, from `tokens.get`.
        request: the symbol, and which of its USD pairs, where there are several.
        now: the moment; None is the clock's.

    Raises:
        Denied: below operator.
        NotFound: the token was removed meanwhile, or is another tenant's.
        Invalid: on 'pairId', no such pair, or one of another symbol or not in USD.
        Conflict: the symbol has no USD pair, or several.
    """
    access.require(principal, Role.OPERATOR)
    pair = _choose(session, principal.tenant_id, request.priced_as, request.pair_id)
    return _set(session, principal, token, pair, now)


def unlink(session: Session, principal: Principal, token: SubjectRow, now: datetime | None = None) -> SubjectRow:
    """Take the pair from a token; one that has none stays as it is.

    Raises:
        Denied: below operator.
        NotFound: the token was removed meanwhile, or is another tenant's.
    """
    access.require(principal, Role.OPERATOR)
    return _set(session, principal, token, None, now)


def _choose(session: Session, tenant_id: str, priced_as: str, pair_id: str | None) -> PairRow:
    if pair_id is not None:
        pair = _named(session, tenant_id, pair_id)
        if pair.priced_as != priced_as:
            detail = f"{pair_id} prices {pair.priced_as}, not {priced_as[:64]}; name a pair of that symbol"
            raise Invalid("pairId", "other-symbol", detail)
        if pair.priced_in != DEFAULT_PRICED_IN:
            detail = f"{pair_id} is priced in {pair.priced_in}; values are in USD, so name a pair in USD"
            raise Invalid("pairId", "not-in-usd", detail)
        return pair
    found = pairs.of_items(session, tenant_id, priced_as, DEFAULT_PRICED_IN)
    if not found:
        raise Conflict("no-usd-pair", _missing(session, tenant_id, priced_as), fields=["pricedAs"])
    if len(found) > 1:
        listed = ", ".join(f"{pair.id} ({pair.price_type})" for pair in found)
        raise Conflict(
            "several-usd-pairs",
            f"{priced_as} has several USD pairs: {listed}; choose one with pairId",
            pairs=[PairChoice(pair.id, pair.price_type, tuple(pair.price_sources)) for pair in found],
            fields=["pricedAs"],
        )
    return found[0]


def _named(session: Session, tenant_id: str, pair_id: str) -> PairRow:
    try:
        return pairs.get(session, tenant_id, pair_id)
    except NotFound as error:
        raise Invalid(
            "pairId", "unknown-pair", f"there is no pair {pair_id[:60]!r}; GET /v2/pairs lists all"
        ) from error


def _missing(session: Session, tenant_id: str, priced_as: str) -> str:
    symbols = dict.fromkeys((priced_as[:64], DEFAULT_PRICED_IN))
    absent = [symbol for symbol in symbols if items.find(session, tenant_id, symbol) is None]
    first = f"POST {' and '.join(repr(symbol) for symbol in absent)} to /v1/priced-items, then " if absent else ""
    return f"there is no pair {priced_as[:64]}/USD; {first}POST the pair to /v2/pairs"


def _set(
    session: Session, principal: Principal, token: SubjectRow, pair: PairRow | None, now: datetime | None
) -> SubjectRow:
    if pair is not None:
        pairs.lock(session, principal.tenant_id, pair.id, is_shared=True)
    locked = subjects.lock(session, principal.tenant_id, token)
    before = subjects.get(session, principal.tenant_id, token.kind, token.id)
    pair_key = None if pair is None else pair.pair_key
    if locked.pair_key == pair_key:
        return before
    locked.pair_key = pair_key
    locked.updated_at = max(now or utc_now(), locked.updated_at)
    session.flush()
    after = subjects.get(session, principal.tenant_id, token.kind, token.id)
    action: audit.Action = "token.unlink" if pair is None else "token.link"
    record_change(session, principal, action, "token", token.id, _audited(before), _audited(after), now)
    return after


def _audited(token: SubjectRow) -> dict[str, str | None]:
    return {"pricedAs": token.priced_as, "pricedIn": token.priced_in, "pairId": token.pair_id}
