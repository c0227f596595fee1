"""Cursors: opaque, encrypted positions in a collection, valid for one route, its filters and one tenant.

A cursor either stays in the version that answered, or contains a digest of the delivered rows. With the digest, the
next page comes from the newest version. The queries of pages belong elsewhere.
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
from api.http.parameters import dated_items
from api.schema import FieldError
from control.inputs import CURSOR

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
    """The rows of all earlier pages: the key of the first row, and a digest of the rows."""

    first: Key
    digest: int


@dataclass(frozen=True, slots=True)
class Position:
    """Position of a cursor: the key of the last delivered row, and the published version (0: none) of its page.

    With `delivered`, the next page comes from the newest version; without it, from the same version.
    """

    version: int
    key: Key
    delivered: Delivered | None = None


class CursorCipher:
    """Encrypt and decrypt cursors. Encryption is deterministic, so that equal answers have equal bytes.

    Args:
        secret: the service's key, 32 bytes.
    """

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESSIV(secret)

    def encrypt(self, scope: bytes, epoch: str, position: Position) -> str:
        """Return the cursor of a position.

        Args:
            scope: result of `cursor_scope`.
            epoch: epoch of the installation when the page was read.
            position: the position.
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
        """Return the position of a cursor with keys of this form.

        Raises:
            ApiError: 400, the cursor is invalid, has keys of another form, or belongs to another route, filter or
                tenant; 410, it was made in another epoch.
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
    """Return the scope of a cursor: path, tenant and filters. Days such as `yesterday` become dates."""
    filters = sorted((name, value) for name, value in dated_items(request, now) if name not in _PASSED_OVER)
    return msgspec.json.encode([request.scope["path"], tenant_id, filters])
