"""Answers to POSTs that carry an Idempotency-Key, kept for a day so that a repeated request gets the first answer.

The API decides which requests are replayed, and which headers a replay leaves out.
"""

import re
from datetime import datetime, timedelta

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from control.clock import utc_now
from control.errors import Invalid
from control.models import IdempotencyRecord

LIFETIME = timedelta(hours=24)

KEY = re.compile(r"[\x21-\x7e]{1,255}")
"""Form of an Idempotency-Key."""


def find(session: Session, tenant_id: str, key: str, now: datetime | None = None) -> IdempotencyRecord | None:
    """Return the answer stored under a tenant's key in the last 24 hours, or None.

    In a write transaction a second request with the same key waits here until the first has ended, so that only one
    of them does the work.

    Raises:
        Invalid: on 'Idempotency-Key'.
    """
    if KEY.fullmatch(key) is None:
        raise Invalid(
            "Idempotency-Key", "malformed", "Idempotency-Key must be 1 to 255 visible ASCII characters without spaces"
        )
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"{tenant_id} {key}", 0))))
    record = session.get(IdempotencyRecord, (tenant_id, key))
    return record if record is not None and abs((now or utc_now()) - record.created_at) < LIFETIME else None


def store(
    session: Session,
    tenant_id: str,
    key: str,
    *,
    method: str,
    path: str,
    body_hash: str,
    status: int,
    response_body: bytes,
    now: datetime | None = None,
) -> None:
    """Store the answer to a request, after `find` gave None in the same transaction; an expired one is replaced.

    Args:
        session: the write transaction that also holds the changes of the request.
        tenant_id: the tenant of the key.
        key: the Idempotency-Key.
        method: HTTP method of the request.
        path: path of the request.
        body_hash: SHA-256 of the request body, in hexadecimal.
        status: HTTP status of the answer.
        response_body: the answer, as it may be replayed.
        now: the moment; None is the clock's.
    """
    session.merge(
        IdempotencyRecord(
            tenant_id=tenant_id,
            key=key,
            method=method,
            path=path,
            body_hash=body_hash,
            status=status,
            response_body=response_body,
            created_at=now or utc_now(),
        )
    )
    session.flush()


def purge(session: Session, now: datetime | None = None) -> int:
    """Delete the expired answers of all tenants, also those from a clock that was ahead, and return their number."""
    now = now or utc_now()
    return len(
        session.scalars(
            delete(IdempotencyRecord)
            .where(or_(IdempotencyRecord.created_at <= now - LIFETIME, IdempotencyRecord.created_at >= now + LIFETIME))
            .returning(IdempotencyRecord.key)
        ).all()
    )
