"""Access: API keys, their secrets, and roles.

A bearer token is `lm_<key id without prefix>_<secret>`. The secret is 256 random bits, so one round of SHA-256 is
enough to store it; it can be neither guessed nor looked up in a table.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from control import audit, ids
from control.clock import utc_now
from control.errors import Denied, Invalid, NotFound, Unauthenticated
from control.instants import write_instant
from control.models import ApiKey, Tenant

KEY_PREFIX = "key_"
_SECRET_BYTES = 32
_BEARER = re.compile(r"lm_([0-9a-z]{26})_([0-9a-f]{64})")
_USE_RESOLUTION = timedelta(minutes=1)
# A recorded use further ahead is from a clock that was wrong; the clocks of nodes differ by less.
_MOST_AHEAD = timedelta(days=1)


class Role(StrEnum):
    """The roles of keys, least first; each may do all that the ones before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Principal:
    """The author of a request: one key of one tenant.

    Attributes:
        last_used_at: when the key was, as the store said when it was authenticated.
        revision: of the tenant's configuration at that time; later reads for the principal are as new, or newer.
        shard: of the tenant at that time.
        shard_version: first version of the shard with the tenant, if it moved there; else None.
    """

    tenant_id: str
    key_id: str
    role: Role
    last_used_at: datetime | None = field(default=None, compare=False)
    revision: int = field(default=0, compare=False)
    shard: int = field(default=0, compare=False)
    shard_version: int | None = field(default=None, compare=False)


def create_key(
    session: Session, tenant_id: str, role: str, now: datetime | None = None, *, actor: str = audit.CLI
) -> tuple[ApiKey, str]:
    """Create a key for an actor (as of `audit.record`); returns it and its bearer token, which cannot be read again.

    Raises:
        Invalid: on 'role'.
        NotFound: no such tenant.
    """
    if role not in set(Role):
        raise Invalid("role", "unknown-role", f"role is {role!r}; use one of {', '.join(Role)}")
    if session.get(Tenant, tenant_id) is None:
        raise NotFound("tenant", tenant_id)
    secret = secrets.token_hex(_SECRET_BYTES)
    key = ApiKey(
        id=ids.new_id(KEY_PREFIX),
        tenant_id=tenant_id,
        role=role,
        secret_hash=_hash(secret),
        created_at=now or utc_now(),
    )
    session.add(key)
    audit.record(session, tenant_id, actor, "key.create", "key", key.id, None, _audited(key), now)
    return key, f"lm_{key.id.removeprefix(KEY_PREFIX)}_{secret}"


def revoke_key(
    session: Session, tenant_id: str, key_id: str, now: datetime | None = None, *, actor: str = audit.CLI
) -> ApiKey:
    """Revoke a key at once and for good, for an actor (as of `audit.record`); revoking again changes nothing.

    Raises:
        NotFound: the tenant has no such key.
    """
    key = session.get(ApiKey, key_id) if ids.is_id(KEY_PREFIX, key_id) else None
    if key is None or key.tenant_id != tenant_id:
        raise NotFound("key", key_id)
    if key.revoked_at is None:
        before = _audited(key)
        key.revoked_at = now or utc_now()
        audit.record(session, tenant_id, actor, "key.revoke", "key", key.id, before, _audited(key), now)
    return key


def list_keys(session: Session, tenant_id: str) -> list[ApiKey]:
    """Return all keys of a tenant, revoked ones too, oldest first."""
    return list(session.scalars(select(ApiKey).where(ApiKey.tenant_id == tenant_id).order_by(ApiKey.id)))


def authenticate(session: Session, bearer: str) -> Principal:
    """Return the principal of a bearer token (without the word Bearer); reads only.

    Raises:
        Unauthenticated: malformed, unknown, wrong or revoked; which of them is not told.
    """
    found = _BEARER.fullmatch(bearer)
    its = select(ApiKey, Tenant.revision, Tenant.shard, Tenant.shard_version)
    its = its.join(Tenant, Tenant.id == ApiKey.tenant_id)
    row = session.execute(its.where(ApiKey.id == KEY_PREFIX + found[1])).one_or_none() if found else None
    key, revision, shard, since = row if row else (None, 0, 0, None)
    # Compared in constant time, and also when there is no such key, so that time tells nothing.
    is_right = hmac.compare_digest(_hash(found[2] if found else ""), key.secret_hash if key else _hash("-"))
    if key is None or not is_right or key.revoked_at is not None:
        raise Unauthenticated("the API key is not valid; send Authorization: Bearer and a key that is not revoked")
    return Principal(key.tenant_id, key.id, Role(key.role), key.last_used_at, revision, shard, since)


def is_in_force(session: Session, tenant_id: str, key_id: str) -> bool:
    """Say whether a tenant has a key of this id that is not revoked."""
    key = session.get(ApiKey, key_id)
    return key is not None and key.tenant_id == tenant_id and key.revoked_at is None


def is_touch_due(principal: Principal, now: datetime | None = None) -> bool:
    """Say whether this use should be recorded by `touch`: use is known to the minute, to save writes."""
    last = principal.last_used_at
    return last is None or not -_MOST_AHEAD < (now or utc_now()) - last < _USE_RESOLUTION


def touch(session: Session, key_id: str, now: datetime | None = None) -> None:
    """Record the use of a key, cut to the minute, if none as late is recorded; one too far ahead is replaced."""
    minute = (now or utc_now()).replace(second=0, microsecond=0)
    last = ApiKey.last_used_at
    is_replaced = (last.is_(None), last < minute, last > minute + _MOST_AHEAD)
    session.execute(update(ApiKey).where(ApiKey.id == key_id, or_(*is_replaced)).values(last_used_at=minute))


def require(principal: Principal, role: str) -> None:
    """Pass when the principal's role is this one or a higher one.

    Raises:
        Denied: it is lower.
    """
    needed = Role(role)
    if _RANKS[principal.role] < _RANKS[needed]:
        raise Denied(f"this needs the role {needed}; the key has {principal.role}")


def _audited(key: ApiKey) -> dict[str, str | None]:
    return {"role": key.role, "revokedAt": write_instant(key.revoked_at) if key.revoked_at else None}


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("ascii")).hexdigest()
