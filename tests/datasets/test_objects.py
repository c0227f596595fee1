"""Objects in a real S3 server and in a folder: a file is fetched whole, or not at all."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.datasets.object_store import ObjectStore
from warehouse.objects import Objects, ObjectStoreError

_CONTENT = b"version" * 3_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with ObjectStore() as running:
        running.make_bucket("versions")
        yield running


@pytest.fixture(params=["s3", "folder"])
def objects(request: pytest.FixtureRequest, server: ObjectStore, tmp_path: Path) -> Objects:
    if request.param == "s3":
        return Objects(f"s3://versions/{tmp_path.name}", server.variables)
    return Objects(str(tmp_path / "store"))


def test_a_file_comes_back_as_it_was(objects: Objects, tmp_path: Path) -> None:
    source = tmp_path / "a.duckdb"
    source.write_bytes(_CONTENT)
    stored = objects.put(source, "serving/shard-1")
    assert stored.sha256 == hashlib.sha256(_CONTENT).hexdigest()
    assert stored.name == f"serving/shard-1/{stored.sha256}.duckdb"
    assert objects.put(source, "serving/shard-1") == stored
    (listed,) = objects.list("serving")
    assert (listed.name, listed.byte_count) == (stored.name, len(_CONTENT))
    assert abs(listed.modified_at - datetime.now(UTC)) < timedelta(minutes=5)
    objects.fetch(stored, tmp_path / "b.duckdb")
    assert (tmp_path / "b.duckdb").read_bytes() == _CONTENT
    objects.delete(stored.name)
    assert objects.list("serving") == []


@pytest.mark.parametrize("other", [b"shorter", b"VERSION" * 3_000_000, _CONTENT + b"more"])
def test_another_content_is_refused_and_leaves_nothing(objects: Objects, tmp_path: Path, other: bytes) -> None:
    source = tmp_path / "a.duckdb"
    source.write_bytes(_CONTENT)
    stored = objects.put(source, "x")
    source.write_bytes(other)
    changed = objects.put(source, "x")
    target = tmp_path / "copy" / "b.duckdb"
    target.parent.mkdir()
    with pytest.raises(ObjectStoreError, match="its content differs from the stored object"):
        objects.fetch(changed._replace(byte_count=stored.byte_count, sha256=stored.sha256), target)
    assert list(target.parent.iterdir()) == []


@pytest.mark.ci
def test_a_store_that_does_not_answer_is_named_without_credentials(server: ObjectStore, tmp_path: Path) -> None:
    objects = Objects("s3://versions/gone", server.variables | {"AWS_SECRET_ACCESS_KEY": "wrong-secret"})
    source = tmp_path / "a.duckdb"
    source.write_bytes(b"x")
    with pytest.raises(ObjectStoreError, match="the store of objects does not answer, or refuses") as caught:
        objects.put(source, "x")
    assert "wrong-secret" not in str(caught.value)
