"""Files in a store that several machines share: a server with the protocol of S3, or a folder.

Names hold the hash of the content, so an object never changes, and a reader can check it.
"""

import errno
import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from control.settings import S3
from warehouse.buckets import PIECE_BYTES, Bucket, ListedObject, ObjectStoreError
from warehouse.folders import sync
from warehouse.s3 import read_access

__all__ = ["ListedObject", "ObjectStoreError", "Objects", "StoredObject"]


class StoredObject(NamedTuple):
    """An object: its name in the store, its size in bytes, and the SHA-256 of its content in hexadecimal."""

    name: str
    byte_count: int
    sha256: str


class Objects:
    """The objects below one place.

    Args:
        place: `s3://bucket/prefix`, or the path of a folder.
        environ: variables that clients of AWS use; default: those of the process.
        clock: monotonic clock in seconds.
    """

    def __init__(
        self, place: str, environ: Mapping[str, str] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store: Bucket | _Folder
        if place.startswith(S3):
            self._store = Bucket(place.removeprefix(S3).strip("/"), read_access(environ), clock)
        else:
            self._store = _Folder(Path(place))

    def put(self, path: Path, prefix: str) -> StoredObject:
        """Store a file below a prefix, under a name that holds the hash of its content.

        Raises:
            ObjectStoreError: the store does not answer in time, or refuses; it has no complete object then.
        """
        with path.open("rb") as source:
            sha256 = hashlib.file_digest(source, "sha256").hexdigest()
        stored = StoredObject(f"{prefix}/{sha256}{path.suffix}", path.stat().st_size, sha256)
        with _named(stored.name):
            self._store.write(stored.name, path)
        return stored

    def fetch(self, stored: StoredObject, target: Path) -> None:
        """Copy an object to a new file, which appears only when it is complete.

        Raises:
            ObjectStoreError: the store does not answer in time, or the object is not the one that was stored.
        """
        part = target.with_name(f".{target.name}.part")
        digest, count = hashlib.sha256(), 0
        try:
            with _named(stored.name), part.open("wb") as copy:
                for piece in self._store.read(stored.name, stored.byte_count):
                    count += len(piece)
                    if count > stored.byte_count:
                        break
                    digest.update(piece)
                    copy.write(piece)
            if (count, digest.hexdigest()) != (stored.byte_count, stored.sha256):
                raise ObjectStoreError(f"{stored.name}: its content differs from the stored object")
            sync(part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    def list(self, prefix: str) -> list[ListedObject]:
        """List the objects below a prefix, by name.

        Raises:
            ObjectStoreError: the store does not answer in time, or refuses.
        """
        with _named(prefix):
            return sorted(self._store.list(prefix))

    def delete(self, name: str) -> None:
        """Delete an object.

        Raises:
            ObjectStoreError: the store does not answer in time, or refuses.
        """
        with _named(name):
            self._store.delete(name)


class _Folder:
    """The same in a folder."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = root

    def write(self, name: str, path: Path) -> None:
        (self._root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, self._root / name)

    def read(self, name: str, byte_count: int) -> Iterator[bytes | bytearray]:
        with (self._root / name).open("rb") as source:
            while piece := source.read(PIECE_BYTES):
                yield piece

    def list(self, prefix: str) -> list[ListedObject]:
        found = []
        for path in (self._root / prefix).rglob("*"):
            if path.is_file():
                status = path.stat()
                modified_at = datetime.fromtimestamp(status.st_mtime, UTC)
                found.append(ListedObject(str(path.relative_to(self._root)), status.st_size, modified_at))
        return found

    def delete(self, name: str) -> None:
        (self._root / name).unlink()


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the object in errors of files."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise ObjectStoreError(f"{name}: the disk is full") from error
        raise ObjectStoreError(f"{name}: the store of objects does not answer, or refuses") from error
