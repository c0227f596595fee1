"""Secrets of the whole service, made by `ControlStore.migrate`; keys of tenants are in `control.access`."""

from sqlalchemy.orm import Session

from control.errors import StoreUnavailable
from control.models import ServiceSecret

CURSOR_KEY = "cursor-signing-key"  # named when cursors were signed alone
EMBED_SIGNING_KEY = "embed-signing-key"
SUPERSET_SECRET_KEY = "superset-secret-key"
SUPERSET_GUEST_KEY = "superset-guest-key"
NAMES = (CURSOR_KEY, EMBED_SIGNING_KEY, SUPERSET_SECRET_KEY, SUPERSET_GUEST_KEY)


def get(session: Session, name: str) -> bytes:
    """Return a secret's 32 bytes.

    Raises:
        StoreUnavailable: the store was migrated by a version that did not know this secret.
    """
    secret = session.get(ServiceSecret, name)
    if secret is None:
        raise StoreUnavailable(f"the control store has no secret {name!r}; run the migration again")
    return secret.value
