"""Cursors: opaque, encrypted positions in a collection, tied to one route, its filters and one tenant.

One is pinned to the version that answered, or carries what its walk has delivered, to go on in the newest version.

How a page is queried does not go here.
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from litestar import Request

from api.errors import ApiError
from api.http.inputs import CURSOR
from api.http.parameters import dated_items
from api.schema import FieldError

_DIGEST_BYTES = 16
_PASSED_OVER = frozenset({"cursor", "limit"})  # may change from page to page
_LONGEST: int = CURSOR["maxLength"]

Key = tuple[str | int, ...]


class _Content(msgspec.Struct, frozen=True, array_like=True):
    epoch: str
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


class CursorCipher:
    """Makes and reads cursors. One position has one cursor, so that equal answers are equal to the byte.

    Args:
        secret: the service's key, 32 bytes.
    """

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESSIV(secret)

    def encrypt(self, scope: bytes, epoch: str, position: Position) -> str:
        """Return the cursor of a position.

        Args:
            scope: that of `cursor_scope`.
            epoch: the installation's, when the page was read.
        """
        delivered = position.delivered
        content = msgspec.msgpack.encode(
            _Content(
                epoch,
                position.version,
                list(position.key),
                list(delivered.first) if delivered else None,
                delivered.digest.to_bytes(_DIGEST_BYTES) if delivered else None,
            )
        )
        return base64.urlsafe_b64encode(self._cipher.encrypt(content, [scope])).rstrip(b"=").decode("ascii")

    def decrypt(self, scope: bytes, epoch: str, cursor: str, form: type[Key] = Key) -> Position:
        """Return the position of a cursor, whose keys are of this form.

        Raises:
            ApiError: 400, the cursor is not ours, or was made for another route, filter or tenant, or with keys of
                another form; 410, it was made in another epoch.
        """
        try:
            if len(cursor) > _LONGEST or not cursor.isascii():
                raise ValueError("malformed")
            encrypted = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            found = msgspec.msgpack.decode(self._cipher.decrypt(encrypted, [scope]), type=_Content)
            if found.epoch != epoch:
                raise _other_epoch()
            key = msgspec.convert(found.key, form)
            first = None if found.first is None else msgspec.convert(found.first, form)
        except (ValueError, binascii.Error, InvalidTag, msgspec.MsgspecError) as error:
            detail = "the cursor is invalid for this list with these parameters; start again without a cursor"
            raise ApiError(
                400, "bad-cursor", detail, errors=[FieldError(parameter="cursor", code="bad-cursor", detail=detail)]
            ) from error
        if first is None or found.digest is None:
            return Position(found.version, key)
        return Position(found.version, key, Delivered(first, int.from_bytes(found.digest)))


def _other_epoch() -> ApiError:
    return ApiError(
        410,
        "cursor-expired",
        "the service was restored or lost its published data after this cursor was made; start again without a cursor",
    )


def cursor_scope(request: Request[Any, Any, Any], tenant_id: str, now: datetime) -> bytes:
    """Return what ties a cursor to its collection: path, filters, with the days that they name now, and tenant."""
    filters = sorted((name, value) for name, value in dated_items(request, now) if name not in _PASSED_OVER)
    return msgspec.json.encode([request.scope["path"], tenant_id, filters])
