"""Rules of embedding: which pages may frame a tenant's reports, and the public id that its links hang on.

The links and their tokens are made and checked by the API.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from control import access, audit, ids
from control.access import Principal, Role
from control.audit import Action
from control.clock import utc_now
from control.errors import Invalid, InvalidValues
from control.models import EmbedOrigin, Tenant, TenantEmbedding
from control.origins import read_origin

EMBED_PREFIX = "emb_"
MOST_ORIGINS = 50
"""All of them go into one header, and proxies take headers of some kilobytes."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """The tenant of an embed id, and the origins that may frame its reports besides our own, in the tenant's order."""

    tenant_id: str
    embed_id: str
    origins: tuple[str, ...]


class Present(NamedTuple):
    """The embed id of a tenant that is in force, the tenant's shard, and the first version there if it moved."""

    embed_id: str
    shard: int
    shard_version: int | None = None


def find_present(session: Session, tenant_id: str) -> Present | None:
    """Return the tenant's embed id in force, with the tenant's shard; None while it never had one."""
    query = select(TenantEmbedding.embed_id, Tenant.shard, Tenant.shard_version)
    query = query.join(Tenant, Tenant.id == TenantEmbedding.tenant_id)
    row = session.execute(query.where(TenantEmbedding.tenant_id == tenant_id)).one_or_none()
    return None if row is None else Present._make(row)


def present_id(session: Session, tenant_id: str) -> str | None:
    """Return the tenant's embed id in force; None while it never had one."""
    found = find_present(session, tenant_id)
    return None if found is None else found.embed_id


def make_id(session: Session, tenant_id: str, now: datetime | None = None) -> str:
    """Return the tenant's embed id in force, made now when there is none; writers at once get the same."""
    return _locked(session, tenant_id, now or utc_now()).embed_id


def find(session: Session, embed_id: str) -> Embedding | None:
    """Return the embedding of an id in force; None when it is malformed, unknown or replaced."""
    if not ids.is_id(EMBED_PREFIX, embed_id):
        return None
    tenant_id = session.scalars(
        select(TenantEmbedding.tenant_id).where(TenantEmbedding.embed_id == embed_id)
    ).one_or_none()
    return None if tenant_id is None else Embedding(tenant_id, embed_id, tuple(list_origins(session, tenant_id)))


def revoke(session: Session, principal: Principal, now: datetime | None = None) -> str:
    """Replace the tenant's embed id, which ends every link, token and open page made before; returns the new one.

    Raises:
        Denied: the principal is no admin.
    """
    access.require(principal, Role.ADMIN)
    moment = now or utc_now()
    embedding = _locked(session, principal.tenant_id, moment)
    before = embedding.embed_id
    embedding.embed_id, embedding.changed_at = ids.new_id(EMBED_PREFIX), moment
    _record(session, principal, "embedding.revoke", {"embedId": before}, {"embedId": embedding.embed_id}, moment)
    return embedding.embed_id


def list_origins(session: Session, tenant_id: str) -> list[str]:
    """Return the origins that may embed the tenant's reports, in its order; none means our own origin alone."""
    return list(
        session.scalars(
            select(EmbedOrigin.origin).where(EmbedOrigin.tenant_id == tenant_id).order_by(EmbedOrigin.position)
        )
    )


def set_origins(
    session: Session, principal: Principal, origins: Sequence[str], now: datetime | None = None
) -> list[str]:
    """Replace the origins that may embed the tenant's reports; repeated ones count once, the first place holds.

    Raises:
        Denied: the principal is no admin.
        Invalid: on 'embedOrigins', there are too many.
        InvalidValues: on 'embedOrigins/0' and so on, not an origin.
    """
    access.require(principal, Role.ADMIN)
    wanted, moment = _read_origins(origins), now or utc_now()
    _locked(session, principal.tenant_id, moment)
    before = list_origins(session, principal.tenant_id)
    if wanted == before:
        return wanted
    session.execute(delete(EmbedOrigin).where(EmbedOrigin.tenant_id == principal.tenant_id))
    session.add_all(
        EmbedOrigin(tenant_id=principal.tenant_id, position=position, origin=origin)
        for position, origin in enumerate(wanted)
    )
    session.flush()
    _record(session, principal, "embedding.origins", {"embedOrigins": before}, {"embedOrigins": wanted}, moment)
    return wanted


def _locked(session: Session, tenant_id: str, now: datetime) -> TenantEmbedding:
    """Return the tenant's embedding, made when there is none, after the tenant's other writers here."""
    session.execute(select(Tenant.id).where(Tenant.id == tenant_id).with_for_update())
    found = session.get(TenantEmbedding, tenant_id)
    if found is None:
        found = TenantEmbedding(tenant_id=tenant_id, embed_id=ids.new_id(EMBED_PREFIX), created_at=now, changed_at=now)
        session.add(found)
        session.flush()
    return found


def _record(
    session: Session,
    principal: Principal,
    action: Action,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    now: datetime,
) -> None:
    tenant_id = principal.tenant_id
    audit.record(session, tenant_id, principal.key_id, action, "embedding", tenant_id, before, after, now)


def _read_origins(texts: Sequence[str]) -> list[str]:
    if len(texts) > MOST_ORIGINS:
        detail = f"embedOrigins has {len(texts)} origins; list at most {MOST_ORIGINS}"
        raise Invalid("embedOrigins", "too-many", detail)
    read: dict[str, None] = {}
    errors: list[Invalid] = []
    for position, text in enumerate(texts):
        try:
            read[read_origin(text)] = None
        except ValueError as error:
            detail = f"embedOrigins[{position}] is {text[:60]!r}: {error}"
            errors.append(Invalid(f"embedOrigins/{position}", "invalid-origin", detail))
    if errors:
        raise InvalidValues(errors)
    return list(read)
