"""Rules of links: which pair a token is valued by. Values are in USD, so only pairs priced in it can be linked."""

from datetime import datetime

from sqlalchemy.orm import Session

from control import access, audit, revision, subjects
from control.access import Principal, Role
from control.clock import utc_now
from control.errors import Conflict, Invalid, NotFound, PairChoice
from control.pricing import items, pairs
from control.pricing.pairs import DEFAULT_PRICED_IN, PairRow
from control.subjects import SubjectRow


def link(
    session: Session,
    principal: Principal,
    token: SubjectRow,
    *,
    priced_as: str,
    pair_id: str | None = None,
    now: datetime | None = None,
) -> SubjectRow:
    """Link a token to the USD pair of a symbol, in place of the one it was linked to; again changes nothing.

    Args:
        session: a write transaction.
        principal: who asks.
        token: the token, from `tokens.get`.
        priced_as: symbol of a priced item.
        pair_id: which of the symbol's USD pairs; needed where there are several.
        now: the moment; None is the clock's.

    Raises:
        Denied: below operator.
        NotFound: the token was removed meanwhile, or is another tenant's.
        Invalid: on 'pairId', no such pair, or one of another symbol or not in USD.
        Conflict: the symbol has no USD pair, or several.
    """
    access.require(principal, Role.OPERATOR)
    pair = _choose(session, principal.tenant_id, priced_as, pair_id)
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
            f"{priced_as} has several USD pairs: {listed}; say which by pairId",
            pairs=[PairChoice(pair.id, pair.price_type, pair.price_sources) for pair in found],
            fields=["pricedAs"],
        )
    return found[0]


def _named(session: Session, tenant_id: str, pair_id: str) -> PairRow:
    try:
        return pairs.get(session, tenant_id, pair_id)
    except NotFound as error:
        raise Invalid(
            "pairId", "unknown-pair", f"no pair {pair_id[:60]!r}; GET /v2/pairs lists what there is"
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
    audit.record(
        session,
        principal.tenant_id,
        principal.key_id,
        "token.unlink" if pair is None else "token.link",
        "token",
        token.id,
        _audited(before),
        _audited(after),
        now,
    )
    revision.bump(session, principal.tenant_id)
    return after


def _audited(token: SubjectRow) -> dict[str, str | None]:
    return {"pricedAs": token.priced_as, "pricedIn": token.priced_in, "pairId": token.pair_id}
