"""Cursors: opaque, signed positions in a collection, tied to one route, its filters and one tenant.

One is pinned to the version that answered, or carries what its walk has delivered, to go on in the newest version.

How a page is queried does not go here.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

import msgspec
from litestar import Request

from api.errors import ApiError
from api.parameters import query_items
from api.schemas.common import FieldError

_SIGNATURE_BYTES = 16
_DIGEST_BYTES = 16
_PASSED_OVER = frozenset({"cursor", "limit"})  # may change from page to page
_LONGEST = 2048

Key = tuple[str | int, ...]


class _Content(msgspec.Struct, frozen=True, array_like=True):
    scope: bytes
    version: int
    key: list[str | int]
    first: list[str | int] | None = None
    digest: bytes | None = None


@dataclass(frozen=True, slots=True)
class Delivered:
    """The rows that the pages before have delivered: the key of the first of all, and a digest of them."""

    first: Key
    digest: int


@dataclass(frozen=True, slots=True)
class Position:
    """Where a collection goes on: after which key, read in which published version (0: none).

    With `delivered`, it goes on in the newest version; without, in that one.
    """

    version: int
    key: Key
    delivered: Delivered | None = None


class CursorSigner:
    """Makes and reads cursors.

    Args:
        secret: the service's signing key, 32 bytes.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, scope: bytes, position: Position) -> str:
        """Return the cursor of a position; `scope` is that of `cursor_scope`."""
        delivered = position.delivered
        content = msgspec.msgpack.encode(
            _Content(
                scope,
                position.version,
                list(position.key),
                list(delivered.first) if delivered else None,
                delivered.digest.to_bytes(_DIGEST_BYTES) if delivered else None,
            )
        )
        return base64.urlsafe_b64encode(self._signature(content) + content).rstrip(b"=").decode("ascii")

    def read(self, scope: bytes, cursor: str, form: type[Key] = Key) -> Position:
        """Return the position of a cursor, whose keys are of this form.

        Raises:
            ApiError: 400, the cursor is not ours, or was made for another route, filter or tenant, or with keys of
                another form.
        """
        try:
            if len(cursor) > _LONGEST or not cursor.isascii():
                raise ValueError("malformed")
            signed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            signature, content = signed[:_SIGNATURE_BYTES], signed[_SIGNATURE_BYTES:]
            if not hmac.compare_digest(signature, self._signature(content)):
                raise ValueError("signature")
            found = msgspec.msgpack.decode(content, type=_Content)
            if not hmac.compare_digest(found.scope, scope):
                raise ValueError("scope")
            key = msgspec.convert(found.key, form)
            first = None if found.first is None else msgspec.convert(found.first, form)
        except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
            detail = "cursor is not one of this collection with these filters; start again without it"
            raise ApiError(
                400, "bad-cursor", detail, errors=[FieldError(parameter="cursor", code="bad-cursor", detail=detail)]
            ) from error
        if first is None or found.digest is None:
            return Position(found.version, key)
        return Position(found.version, key, Delivered(first, int.from_bytes(found.digest)))

    def _signature(self, content: bytes) -> bytes:
        return hmac.digest(self._secret, content, "sha256")[:_SIGNATURE_BYTES]


def cursor_scope(request: Request[Any, Any, Any], tenant_id: str) -> bytes:
    """Return what ties a cursor to its collection: path, filters and tenant, hashed."""
    filters = sorted((name, value) for name, value in query_items(request) if name not in _PASSED_OVER)
    content = msgspec.json.encode([request.scope["path"], tenant_id, filters])
    return hashlib.sha256(content).digest()[:_SIGNATURE_BYTES]
