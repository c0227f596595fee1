"""Files in a store that several machines share: a server with the protocol of S3, or a folder.

Names hold the hash of the content, so an object never changes, and a reader can check it.
"""

import errno
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

from pyarrow import ArrowException
from pyarrow import fs as arrow_fs

from control.settings import S3
from warehouse.folders import sync
from warehouse.s3 import read_access

_CHUNK = 8 * 1024 * 1024


class ObjectStoreError(Exception):
    """The store did not do its work; the message says which object, and never holds credentials."""


class StoredObject(NamedTuple):
    """An object: its name in the store, its size in bytes, and the SHA-256 of its content in hexadecimal."""

    name: str
    byte_count: int
    sha256: str


class ListedObject(NamedTuple):
    """An object as a listing shows it; `modified_at` is aware, UTC."""

    name: str
    byte_count: int
    modified_at: datetime


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Objects:
    """The objects below one place.

    Args:
        place: `s3://bucket/prefix`, or the path of a folder.
        environ: variables that clients of AWS use; default: those of the process.
    """

    def __init__(self, place: str, environ: Mapping[str, str] | None = None) -> None:
        if place.startswith(S3):
            root = place.removeprefix(S3).strip("/")
            self._files: arrow_fs.FileSystem = arrow_fs.SubTreeFileSystem(root, _s3(environ))
        else:
            Path(place).mkdir(parents=True, exist_ok=True)
            self._files = arrow_fs.SubTreeFileSystem(place, arrow_fs.LocalFileSystem())

    def put(self, path: Path, prefix: str) -> StoredObject:
        """Store a file below a prefix, under a name that holds the hash of its content.

        Raises:
            ObjectStoreError: the store does not answer, or refuses; it has no complete object then.
        """
        with path.open("rb") as source:
            sha256 = hashlib.file_digest(source, "sha256").hexdigest()
        stored = StoredObject(f"{prefix}/{sha256}{path.suffix}", path.stat().st_size, sha256)
        with _named(stored.name), path.open("rb") as source:
            self._files.create_dir(str(PurePosixPath(stored.name).parent), recursive=True)
            with self._files.open_output_stream(stored.name) as target:
                for chunk in iter(lambda: source.read(_CHUNK), b""):
                    target.write(chunk)
            if self._files.get_file_info(stored.name).size != stored.byte_count:
                raise ObjectStoreError(f"{stored.name}: the store did not keep all of it")
        return stored

    def fetch(self, stored: StoredObject, target: Path) -> None:
        """Copy an object to a new file, which appears only when it is complete.

        Raises:
            ObjectStoreError: the store does not answer, or the object is not the one that was stored.
        """
        part = target.with_name(f".{target.name}.part")
        digest, count = hashlib.sha256(), 0
        try:
            with _named(stored.name), self._files.open_input_stream(stored.name) as source, part.open("wb") as copy:
                for chunk in _chunks(source):
                    count += len(chunk)
                    if count > stored.byte_count:
                        break
                    digest.update(chunk)
                    copy.write(chunk)
            if (count, digest.hexdigest()) != (stored.byte_count, stored.sha256):
                raise ObjectStoreError(f"{stored.name}: its content differs from the stored object")
            sync(part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    def list(self, prefix: str) -> list[ListedObject]:
        """List the objects below a prefix, by name."""
        selector = arrow_fs.FileSelector(prefix, allow_not_found=True, recursive=True)
        with _named(prefix):
            found = self._files.get_file_info(selector)
        return sorted(
            ListedObject(info.path, info.size, info.mtime.astimezone(UTC))
            for info in found
            if info.type is arrow_fs.FileType.File
        )

    def delete(self, name: str) -> None:
        """Delete an object."""
        with _named(name):
            self._files.delete_file(name)


def _chunks(source: _Readable) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        yield chunk


def _s3(environ: Mapping[str, str] | None) -> arrow_fs.S3FileSystem:
    """Return a client with the credentials of the environment; anonymous without any."""
    access = read_access(environ)
    return arrow_fs.S3FileSystem(
        access_key=access.key or None,
        secret_key=access.secret or None,
        session_token=access.token or None,
        anonymous=not access.key,
        region=access.region,
        scheme=access.scheme or None,
        endpoint_override=access.host or None,
        connect_timeout=5,
        request_timeout=30,
    )


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the object in errors of the store."""
    try:
        yield
    except (OSError, ArrowException) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise ObjectStoreError(f"{name}: the disk is full") from error
        raise ObjectStoreError(f"{name}: the store of objects does not answer, or refuses") from error
