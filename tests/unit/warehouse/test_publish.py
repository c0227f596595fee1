"""Publishing: immutable files, an atomic pointer, and delayed removal of old versions."""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest

from control.serving import Served
from control.settings import load_settings
from warehouse import shared
from warehouse.versions import (
    PointerError,
    Publication,
    SharingError,
    current_publication,
    epoch_of,
    mark_build,
    megabytes_needed,
    newest_is_readable,
    publish,
    published_versions,
    read_pointer,
    remove_old_versions,
)


@pytest.fixture
def marts(tmp_path: Path) -> Path:
    path = tmp_path / "marts_build.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create schema marts; create table marts.numbers as select 1 as number")
    return path


def _number(path: Path) -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        row = connection.execute("select number from marts.numbers").fetchone()
        assert row is not None
        return int(row[0])


def test_versions_are_copies_and_the_pointer_names_the_newest(marts: Path, tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    assert current_publication(serving) is None
    assert publish(marts, serving, 1).version == 1
    with duckdb.connect(str(marts)) as connection:
        connection.execute("update marts.numbers set number = 2")
    assert publish(marts, serving, 2).version == 2

    assert {version: _number(path) for version, path in published_versions(serving).items()} == {1: 1, 2: 2}
    assert _number(serving / "current.duckdb") == 2
    current = current_publication(serving)
    assert current is not None
    assert (current.version, current.file) == (2, "marts-000000000002.duckdb")
    assert not list(serving.glob(".*"))


def test_reader_keeps_its_version_during_publications(marts: Path, tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    publish(marts, serving, 1)
    with duckdb.connect(str(serving / "marts-000000000001.duckdb"), read_only=True) as reader:
        with duckdb.connect(str(marts)) as connection:
            connection.execute("update marts.numbers set number = 2")
        publish(marts, serving, 2)
        assert reader.execute("select number from marts.numbers").fetchall() == [(1,)]


def test_file_left_by_a_kill_before_the_pointer_moved_is_unchanged(marts: Path, tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    publish(marts, serving, 1)
    (serving / "marts-000000000002.duckdb").write_bytes(b"whole")
    (serving / ".marts-000000000003.duckdb.tmp").write_bytes(b"half")
    assert publish(marts, serving, 2).version == 3
    assert _number(serving / "marts-000000000003.duckdb") == 1
    assert (serving / "marts-000000000002.duckdb").read_bytes() == b"whole"
    assert not list(serving.glob(".*"))
    publish(marts, serving, 3)
    assert remove_old_versions(serving, grace_seconds=0, budget_bytes=0) == [1, 2]


@pytest.mark.parametrize(
    ("pointer", "files", "recorded", "expected"),
    [
        (None, [1, 2, 7], 3, 8),
        ("{", [1, 2], 9, 10),
        ("[]", [3], 0, 4),
        ('{"version": "x"}', [3], 0, 4),
        (None, [], 41, 42),
        ('{"version": 12, "file": "marts-000000000012.duckdb", "publishedAt": "2026-01-01T00:00:00Z"}', [11], 3, 13),
        (None, [], 0, 1),
    ],
)
def test_new_version_is_one_more_than_any_known_version(
    marts: Path, tmp_path: Path, pointer: str | None, files: list[int], recorded: int, expected: int
) -> None:
    serving = tmp_path / "serving"
    serving.mkdir()
    for number in files:
        (serving / f"marts-{number:012d}.duckdb").write_bytes(b"published")
    if pointer is not None:
        (serving / "current.json").write_text(pointer)
    assert publish(marts, serving, 1, recorded).version == expected
    current = current_publication(serving)
    assert current is not None
    assert current.version == expected
    for number in files:
        assert (serving / f"marts-{number:012d}.duckdb").read_bytes() == b"published"


@pytest.mark.parametrize("loss", ["pointer", "half a pointer", "the file it names"])
def test_newest_file_is_current_without_the_pointer_or_its_file(marts: Path, tmp_path: Path, loss: str) -> None:
    serving = tmp_path / "serving"
    for batch in (1, 2):
        publish(marts, serving, batch)
    match loss:
        case "pointer":
            (serving / "current.json").unlink()
        case "half a pointer":
            (serving / "current.json").write_bytes((serving / "current.json").read_bytes()[:9])
        case _:
            (serving / "marts-000000000002.duckdb").unlink()
    current = current_publication(serving)
    assert current is not None
    assert current.version == (1 if loss == "the file it names" else 2)
    assert _number(serving / current.file) == 1


_POINTER = {"version": 3, "file": "marts-000000000003.duckdb", "publishedAt": "2026-01-01T00:00:00Z"}


@pytest.mark.ci
@pytest.mark.parametrize(
    "pointer",
    [
        "[" * 4000,
        "[" * 200_000,
        f'{{"version": {"9" * 4000}}}',
        '"text"',
        "7",
        json.dumps(_POINTER) + " " * 5000,
        *(
            json.dumps(_POINTER | changed)
            for changed in (
                {"version": -3},
                {"version": 999_999_999_999, "file": "marts-999999999999.duckdb"},
                {"version": True, "file": "marts-000000000001.duckdb"},
                {"version": float("inf")},
                {"version": "3"},
                {"file": "../marts-000000000003.duckdb"},
                {"publishedAt": "2026-01-01"},
                {"publishedAt": None},
                {"batchId": -1},
                {"controlRevision": 10**30},
            )
        ),
    ],
)
def test_pointer_of_any_other_form_counts_as_damaged(marts: Path, tmp_path: Path, pointer: str) -> None:
    serving = tmp_path / "serving"
    publish(marts, serving, 1)
    (serving / "current.json").write_text(json.dumps(_POINTER))
    assert read_pointer(serving).version == 3
    (serving / "current.json").write_text(pointer)
    with pytest.raises(PointerError, match=r"current\.json cannot be read"):
        read_pointer(serving)
    current = current_publication(serving)
    assert current is not None
    assert current.version == 1
    assert not newest_is_readable(serving)
    assert publish(marts, serving, 2).version == 2


@pytest.mark.parametrize(
    "loss", ["pointer", "half a pointer", "the file it names", "all of the file", "half of the file", "other content"]
)
def test_unreadable_version_is_published_again(marts: Path, tmp_path: Path, loss: str) -> None:
    serving = tmp_path / "serving"
    assert not newest_is_readable(serving)
    for batch in (1, 2):
        publish(marts, serving, batch)
    assert newest_is_readable(serving)
    pointer, newest = serving / "current.json", serving / "marts-000000000002.duckdb"
    newest.chmod(0o600)
    match loss:
        case "pointer":
            pointer.unlink()
        case "half a pointer":
            pointer.write_bytes(pointer.read_bytes()[:9])
        case "the file it names":
            newest.unlink()
        case "all of the file":
            newest.write_bytes(b"")
        case "half of the file":
            newest.write_bytes(newest.read_bytes()[:5000])
        case _:
            newest.write_bytes(b"<html>" * 100_000)
    assert not newest_is_readable(serving)
    assert publish(marts, serving, 2).version == 3
    assert newest_is_readable(serving)


def test_old_versions_are_removed_after_the_grace_period_or_over_budget(marts: Path, tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    for batch in range(1, 6):
        publish(marts, serving, batch)
    assert remove_old_versions(serving, grace_seconds=900, budget_bytes=10**12) == []
    hour_ago = time.time() - 3600
    for version in (1, 2):
        os.utime(published_versions(serving)[version], (hour_ago, hour_ago))
    # Version 1 was superseded when version 2 came, an hour ago; version 2 only now.
    assert remove_old_versions(serving, grace_seconds=900, budget_bytes=10**12) == [1]
    assert remove_old_versions(serving, grace_seconds=900, budget_bytes=0) == [2, 3]
    assert sorted(published_versions(serving)) == [4, 5]


def test_version_superseded_while_the_clock_was_ahead_is_removed(marts: Path, tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    for batch in range(1, 5):
        publish(marts, serving, batch)
    ahead = time.time() + 1826 * 86_400
    os.utime(published_versions(serving)[2], (ahead, ahead))
    assert remove_old_versions(serving, grace_seconds=900, budget_bytes=10**12) == [1]


def test_spill_files_of_a_killed_reader_are_deleted_after_its_version(marts: Path, tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    for batch in range(1, 5):
        publish(marts, serving, batch)
    spilled = [serving / f"marts-{version:012d}.duckdb.tmp" for version in (2, 4)]
    for folder in spilled:
        folder.mkdir()
        (folder / "duckdb_temp_storage_DEFAULT-0.tmp").write_bytes(b"rows")
    assert remove_old_versions(serving, grace_seconds=900, budget_bytes=0) == [1, 2]
    # A request may still be reading the version of a just deleted file.
    assert all(folder.exists() for folder in spilled)
    later = datetime.now(UTC) + timedelta(hours=1)
    assert remove_old_versions(serving, grace_seconds=900, budget_bytes=0, now=later) == []
    assert [folder.exists() for folder in spilled] == [False, True]


def test_pinned_versions_are_kept_beyond_grace_and_budget(marts: Path, tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    for batch in range(1, 7):
        publish(marts, serving, batch)
    later = datetime.now(UTC) + timedelta(hours=1)
    assert remove_old_versions(serving, grace_seconds=900, budget_bytes=0, pinned={2, 4}) == [1, 3]
    assert remove_old_versions(serving, grace_seconds=900, budget_bytes=10**12, pinned={2, 4}, now=later) == []
    assert remove_old_versions(serving, grace_seconds=900, budget_bytes=10**12, pinned={4}, now=later) == [2]
    assert sorted(published_versions(serving)) == [4, 5, 6]


def test_disk_budget_of_pins_includes_versions_kept_anyway(tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    serving.mkdir()
    for version, size in ((3, 1_000_000), (4, 2_000_000), (5, 4_000_000), (6, 8_000_001)):
        (serving / f"marts-{version:012d}.duckdb").write_bytes(b"0" * size)
    # The current version, 6, and the previous one stay in any case.
    assert megabytes_needed(serving, set()) == 0
    assert megabytes_needed(serving, {5, 6}) == 0
    assert megabytes_needed(serving, {2}) == 0
    assert megabytes_needed(serving, {4}) == 15
    assert megabytes_needed(serving, {3, 4, 6}) == 16
    # A version removed between listing the folder and reading the file size.
    (serving / "marts-000000000001.duckdb").symlink_to("nowhere")
    assert megabytes_needed(serving, {1}) == 13


def test_file_system_with_shared_blocks_copies_nothing(
    marts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def share(target: int, request: int, source: int) -> None:
        """Share blocks like the file system: the target starts with the source's content."""
        assert request == 0x40049409
        os.sendfile(target, source, 0, os.fstat(source).st_size)

    def copy(*_: object) -> None:
        raise AssertionError("the file was copied")

    monkeypatch.setattr("warehouse.copies.fcntl.ioctl", share)
    monkeypatch.setattr("warehouse.versions.shutil.copyfile", copy)
    serving = tmp_path / "serving"
    publish(marts, serving, 1)
    with duckdb.connect(str(marts)) as connection:
        connection.execute("update marts.numbers set number = 2")
    publish(marts, serving, 2)
    assert {version: _number(path) for version, path in published_versions(serving).items()} == {1: 1, 2: 2}
    assert {path.stat().st_mode & 0o777 for path in published_versions(serving).values()} == {0o400}


def _epoch(serving: Path) -> str:
    """Return the newest version's epoch, which must equal the pointer's."""
    newest = current_publication(serving)
    assert newest is not None
    with duckdb.connect(str(serving / newest.file), read_only=True) as connection:
        found = epoch_of(connection)
    assert json.loads((serving / "current.json").read_text())["epoch"] == found != ""
    return found


@pytest.mark.ci
@pytest.mark.parametrize(
    ("batch", "recorded", "revision", "loss", "is_new"),
    [
        (9, 2, 7, None, False),
        (8, 2, 7, None, False),  # nothing new, but published again
        (8, 1, 7, None, False),  # killed before the warehouse recorded the publication
        (8, 0, 7, None, True),  # the warehouse is older
        (7, 2, 7, None, True),
        (9, 2, 6, None, True),  # the control store is older
        (9, 2, 7, "pointer", True),
        (9, 2, 7, "half a pointer", True),
        (9, 2, 7, "of the release before", True),
        (9, 2, 7, "newest file", False),
    ],
)
def test_an_epoch_ends_with_a_restore_or_a_lost_pointer(
    marts: Path, tmp_path: Path, batch: int, recorded: int, revision: int, loss: str | None, is_new: bool
) -> None:
    serving = tmp_path / "serving"
    publish(marts, serving, 7, 0, 6)
    publish(marts, serving, 8, 1, 7)
    before, pointer = _epoch(serving), serving / "current.json"
    match loss:
        case "pointer":
            pointer.unlink()
        case "half a pointer":
            pointer.write_bytes(pointer.read_bytes()[:9])
        case "of the release before":
            fields = json.loads(pointer.read_text())
            pointer.write_text(json.dumps({name: fields[name] for name in ("version", "file", "publishedAt")}))
        case "newest file":
            (serving / "marts-000000000002.duckdb").unlink()
    publish(marts, serving, batch, recorded, revision)
    assert (_epoch(serving) != before) is is_new


class _Control:
    """Records of one shard, like those in the control store."""

    def __init__(self) -> None:
        self.served: tuple[int, str] | None = None
        self.fails = False
        self.switched = 0

    def newest_switch(self) -> int:
        return self.switched

    def newest(self) -> tuple[int, str] | None:
        return self.served

    def put_in_force(self, path: Path, publication: Publication, pointer: str, before: int | None) -> None:
        assert path.exists()
        if self.fails or before != (self.served[0] if self.served else None):
            raise SharingError("not served")
        self.served = publication.version, pointer


def _publish_shared(
    marts: Path, serving: Path, control: _Control, batch: int, recorded: int, revision: int = 7
) -> tuple[int, str]:
    version = publish(marts, serving, batch, recorded, revision, control).version
    assert control.served is not None
    assert json.loads(control.served[1]) == json.loads((serving / "current.json").read_text())
    return version, _epoch(serving)


def test_a_shared_version_continues_numbers_and_epoch_of_the_control_store(marts: Path, tmp_path: Path) -> None:
    """The warehouse moves to another machine with an empty folder of versions."""
    control = _Control()
    _, epoch = _publish_shared(marts, tmp_path / "first", control, batch=7, recorded=0)
    assert _publish_shared(marts, tmp_path / "first", control, batch=8, recorded=1) == (2, epoch)
    assert _publish_shared(marts, tmp_path / "second", control, batch=9, recorded=2) == (3, epoch)
    # The first machine publishes again: its folder is older than the control store.
    version, other = _publish_shared(marts, tmp_path / "first", control, batch=9, recorded=2)
    assert version == 4
    assert other == epoch


def test_a_shared_version_without_records_has_a_number_above_that_of_a_moved_tenant(
    marts: Path, tmp_path: Path
) -> None:
    """API nodes answer the tenant from that number on, and may have older files."""
    control = _Control()
    control.switched = 50
    version, epoch = _publish_shared(marts, tmp_path / "serving", control, batch=1, recorded=0)
    assert version == 51
    assert _publish_shared(marts, tmp_path / "serving", control, batch=2, recorded=51) == (52, epoch)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("batch", "recorded", "revision", "loss", "is_new"),
    [
        (9, 2, 7, None, False),
        (9, 1, 7, None, False),  # killed before the warehouse recorded the second version
        (9, 0, 7, None, True),  # an empty warehouse
        (7, 2, 7, None, True),
        (9, 2, 6, None, True),
        (9, 2, 7, "local pointer", False),
        (9, 2, 7, "record", True),  # the control store was restored
        (9, 2, 7, "newest record", False),
        (9, 2, 6, "newest record", True),
    ],
)
def test_a_shared_epoch_ends_with_a_restore_of_either_store(
    marts: Path, tmp_path: Path, batch: int, recorded: int, revision: int, loss: str | None, is_new: bool
) -> None:
    control, serving = _Control(), tmp_path / "serving"
    _publish_shared(marts, serving, control, batch=7, recorded=0, revision=6)
    first = control.served
    _, before = _publish_shared(marts, serving, control, batch=8, recorded=1)
    match loss:
        case "local pointer":
            (serving / "current.json").unlink()
        case "record":
            control.served = None
        case "newest record":
            control.served = first
    version, epoch = _publish_shared(marts, serving, control, batch, recorded, revision)
    assert version == 3
    assert (epoch != before) is is_new


def test_a_version_that_is_not_served_leaves_nothing_and_is_published_again(marts: Path, tmp_path: Path) -> None:
    control, serving = _Control(), tmp_path / "serving"
    _, epoch = _publish_shared(marts, serving, control, batch=7, recorded=0)
    control.fails = True
    for batch in (8, 9, 10):
        with pytest.raises(SharingError):
            publish(marts, serving, batch, 1, 7, control)
    assert list(published_versions(serving)) == [1]
    control.fails = False
    assert _publish_shared(marts, serving, control, batch=11, recorded=1) == (2, epoch)


def test_a_version_replaces_the_one_that_was_in_force_before_the_build(marts: Path, tmp_path: Path) -> None:
    control, serving = _Control(), tmp_path / "serving"

    def begin_build() -> None:
        with duckdb.connect(str(marts)) as connection:
            mark_build(connection, "token", control.served[0] if control.served else None)

    begin_build()
    _publish_shared(marts, serving, control, batch=7, recorded=0)
    begin_build()
    pointer = control.served
    assert pointer is not None
    # Another builder publishes between the build and its publication.
    control.served = (2, pointer[1])
    with pytest.raises(SharingError):
        publish(marts, serving, 8, 1, 7, control)
    assert control.served[0] == 2
    begin_build()
    assert _publish_shared(marts, serving, control, batch=9, recorded=1)[0] == 3


def test_served_version_superseded_while_the_clock_was_ahead_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    published_at = [now, now + timedelta(days=1826), now, now]
    kept = [Served(number, f"object {number}", 1, "", "{}", at) for number, at in enumerate(published_at, 1)]
    monkeypatch.setattr(shared.serving, "read_kept", lambda *_: kept)
    monkeypatch.setattr(shared.serving, "forget", lambda *_: None)
    publisher = shared.ShardPublisher(load_settings({}), cast(Any, None))
    assert publisher.forget_old_versions(cast(Any, None), set(), now) == kept[:1]
