"""Client for one bucket of a server with the protocol of S3.

Each transfer has a deadline. The client follows no redirect, so no other host gets a signed request.
"""

import hashlib
import hmac
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from math import ceil
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode
from xml.etree import ElementTree  # nosec B405 # expat bounds what entities expand to
from xml.sax.saxutils import escape  # nosec B406 # writes XML, reads none

from control.clock import utc_now
from warehouse.s3 import Access
from warehouse.transport import AnswerTooLarge, Reply, Transport, TransportFault

PIECE_BYTES = 8 * 1024 * 1024
MOST_LISTED = 100_000
_MOST_PARTS = 10_000
_LEAST_SECONDS = 60.0
_LEAST_BYTES_PER_SECOND = 1_000_000
# A page of a listing has at most 1,000 names of 1,024 bytes.
_ANSWER_BYTES = 4 * 1024 * 1024
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.2
_SCOPE_END = "aws4_request"


class ObjectStoreError(Exception):
    """The store did not do its work; the message says which object, and never holds credentials."""


class ListedObject(NamedTuple):
    """An object as a listing shows it; `modified_at` is aware, UTC."""

    name: str
    byte_count: int
    modified_at: datetime


class Bucket:
    """The objects of a bucket below a prefix.

    Args:
        place: bucket and prefix, as `bucket/prefix`.
        access: address and credentials of the server; requests without credentials are anonymous.
        clock: monotonic clock in seconds, that of the deadlines.
    """

    def __init__(self, place: str, access: Access, clock: Callable[[], float]) -> None:
        bucket, _, prefix = place.partition("/")
        self._root = f"{prefix}/" if prefix else ""
        self._access = access
        self._clock = clock
        self._transport = Transport((5.0, 30.0), 1, clock)
        # AWS names the bucket in the host; other servers need not have such a name.
        self._host = access.host or f"{bucket}.s3.{access.region}.amazonaws.com"
        self._base = f"{access.scheme or 'https'}://{self._host}"
        self._path = f"/{bucket}/" if access.host else "/"

    def write(self, name: str, path: Path) -> None:
        """Store a file in parts.

        Raises:
            ObjectStoreError: the store does not answer in time, or refuses; it has no new object then.
        """
        size = path.stat().st_size
        piece = max(PIECE_BYTES, ceil(size / _MOST_PARTS))
        deadline = self._deadline(size)
        begun = self._send("POST", name, deadline, {"uploads": ""})
        upload = {"uploadId": _parsed(name, begun, "InitiateMultipartUploadResult").findtext("{*}UploadId", "")}
        try:
            rows = []
            with path.open("rb") as source:
                for number in range(1, max(ceil(size / piece), 1) + 1):
                    part = {"partNumber": str(number)} | upload
                    etag = self._send("PUT", name, deadline, part, source.read(piece)).etag or ""
                    rows.append(f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etag)}</ETag></Part>")
            body = f"<CompleteMultipartUpload>{''.join(rows)}</CompleteMultipartUpload>".encode()
            # An answer of success may hold an error.
            _parsed(name, self._send("POST", name, deadline, upload, body), "CompleteMultipartUploadResult")
        except BaseException:
            # The first failure is the one to raise.
            with suppress(ObjectStoreError):
                self._send("DELETE", name, self._deadline(0), upload)
            raise

    def read(self, name: str, byte_count: int) -> Iterator[bytes | bytearray]:
        """Yield the content of an object in pieces.

        Args:
            byte_count: expected size; it sets the deadline.

        Raises:
            ObjectStoreError: the store does not answer in time, or refuses.
        """
        deadline = self._deadline(byte_count)
        for start in range(0, byte_count, PIECE_BYTES):
            extra = {"Range": f"bytes={start}-{start + PIECE_BYTES - 1}"}
            piece = self._send("GET", name, deadline, {}, headers=extra, max_bytes=PIECE_BYTES).body
            yield piece
            if len(piece) < PIECE_BYTES:
                return

    def list(self, prefix: str) -> list[ListedObject]:
        """List the objects below a prefix.

        Raises:
            ObjectStoreError: the store does not answer in time, refuses, or lists more than 100,000 objects.
        """
        deadline, found = self._deadline(0), []
        root = f"{self._root}{prefix}/"
        query = {"list-type": "2", "prefix": root}
        while True:
            page = _parsed(prefix, self._send("GET", "", deadline, query), "ListBucketResult")
            for row in page.findall("{*}Contents"):
                key = row.findtext("{*}Key", "")
                if not key.startswith(root):
                    raise ObjectStoreError(f"{prefix}: the store lists objects of another prefix")
                # Other clients mark folders by such names.
                if not key.endswith("/"):
                    found.append(_listed(prefix, key.removeprefix(self._root), row))
            if len(found) > MOST_LISTED:
                raise ObjectStoreError(f"{prefix}: the store lists more than {MOST_LISTED:,} objects")
            if page.findtext("{*}IsTruncated") != "true":
                return found
            query["continuation-token"] = page.findtext("{*}NextContinuationToken", "")

    def delete(self, name: str) -> None:
        """Delete an object; succeed if there is none.

        Raises:
            ObjectStoreError: the store does not answer in time, or refuses.
        """
        self._send("DELETE", name, self._deadline(0), {})

    def _deadline(self, byte_count: int) -> float:
        return self._clock() + _LEAST_SECONDS + byte_count / _LEAST_BYTES_PER_SECOND

    def _send(
        self,
        method: str,
        name: str,
        deadline: float,
        query: Mapping[str, str],
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        max_bytes: int = _ANSWER_BYTES,
    ) -> Reply:
        """Send a request for an object, or for the bucket without a name; repeat it after a passing failure."""
        path = quote(self._path + (self._root + name if name else ""))
        words = urlencode(sorted(query.items()), quote_via=quote)
        url = f"{self._base}{path}?{words}" if words else f"{self._base}{path}"
        trouble, subject = "no complete answer in time", name or "the listing"
        for attempt in range(1, _ATTEMPTS + 1):
            if self._clock() >= deadline:
                break
            sent = _signed(self._access, method, self._host, path, words, body, utc_now()) | dict(headers or {})
            try:
                reply = self._transport.send(method, url, sent, body or None, deadline, max_bytes)
            except AnswerTooLarge:
                raise ObjectStoreError(f"{subject}: the store's answer is too large") from None
            except TransportFault as error:
                trouble = error.reason
                if error.timed_out:
                    break
            else:
                if reply.status < HTTPStatus.MULTIPLE_CHOICES:
                    return reply
                trouble = f"HTTP status {reply.status}"
                if reply.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                    break
            if attempt < _ATTEMPTS:
                time.sleep(_PAUSE_SECONDS * attempt)
        raise ObjectStoreError(f"{subject}: the store of objects does not answer, or refuses ({trouble})")


def _parsed(name: str, reply: Reply, root: str) -> ElementTree.Element:
    """Return the root element of an answer.

    Raises:
        ObjectStoreError: the answer is another one; it may be an error in spite of its status.
    """
    try:
        found = ElementTree.fromstring(bytes(reply.body).strip())  # nosec B314 # as above
    except ElementTree.ParseError:
        found = None
    if found is None or found.tag.rpartition("}")[2] != root:
        raise ObjectStoreError(f"{name}: the store of objects gives no {root}")
    return found


def _listed(prefix: str, name: str, row: ElementTree.Element) -> ListedObject:
    try:
        modified_at = datetime.fromisoformat(row.findtext("{*}LastModified", "")).astimezone(UTC)
        return ListedObject(name, int(row.findtext("{*}Size", "")), modified_at)
    except ValueError:
        raise ObjectStoreError(f"{prefix}: the store lists an object without size or time") from None


def _signed(
    access: Access, method: str, host: str, path: str, query: str, body: bytes, now: datetime
) -> dict[str, str]:
    """Return the headers of a request, signed with version 4 of AWS's signatures if there are credentials."""
    if not access.key:
        return {}
    moment, day, payload = f"{now:%Y%m%dT%H%M%SZ}", f"{now:%Y%m%d}", hashlib.sha256(body).hexdigest()
    headers = {"x-amz-content-sha256": payload, "x-amz-date": moment}
    if access.token:
        headers["x-amz-security-token"] = access.token
    covered = {"host": host} | headers
    names = ";".join(covered)
    lines = "".join(f"{name}:{value}\n" for name, value in covered.items())
    request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{payload}"
    scope = f"{day}/{access.region}/s3/{_SCOPE_END}"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{access.secret}".encode()
    for word in (day, access.region, "s3", _SCOPE_END, text):
        key = hmac.digest(key, word.encode(), "sha256")
    proof = f"Credential={access.key}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    return headers | {"Authorization": f"AWS4-HMAC-SHA256 {proof}"}
