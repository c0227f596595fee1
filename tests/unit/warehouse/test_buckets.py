"""A store of objects that never ends an answer, leads to another host, or lists without end."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.chain.hostile_answers import NEVER_ENDING
from tests.chain.http_server import LoopbackServer, Reply
from warehouse import buckets
from warehouse.objects import Objects, ObjectStoreError, StoredObject

_CONTENT = b"a version"
_STORED = StoredObject("shard-0/a.duckdb", len(_CONTENT), hashlib.sha256(_CONTENT).hexdigest())
_ROW = "<Contents><Key>{}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"


class Store(LoopbackServer):
    """A store that answers each request by a function of its path and query."""

    def __init__(self, answer: Callable[[str], Reply]) -> None:
        super().__init__()
        self._answer = answer
        self.targets: list[str] = []

    def answer(self, body: bytes) -> Reply:
        """Answer no POST."""
        return Reply(status=501)

    def answer_get(self, target: str) -> Reply:
        """Answer a GET."""
        self.targets.append(target)
        return self._answer(target)

    def objects(self, clock: Callable[[], float] = lambda: 0.0) -> Objects:
        """Return a client."""
        names = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
        return Objects("s3://versions/main", {"AWS_ENDPOINT_URL": self.url, **names}, clock)


def listing(*keys: str, token: str = "") -> Reply:
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    rows = "".join(_ROW.format(key) for key in keys)
    xmlns = "http://s3.amazonaws.com/doc/2006-03-01/"
    return Reply(f'<ListBucketResult xmlns="{xmlns}">{more}{rows}</ListBucketResult>'.encode())


def nearly_late(byte_count: int) -> Callable[[], float]:
    """Return a clock that stands still shortly before the deadline of a transfer that begins at 0."""
    times = iter([0.0])
    return lambda: next(times, 60 + byte_count / 1_000_000 - 0.05)


@pytest.mark.parametrize("mode", NEVER_ENDING)
def test_endless_answer_ends_at_the_deadline(mode: str, tmp_path: Path) -> None:
    """Without the deadline, only the time limit of the test would end the transfer."""
    with Store(lambda target: NEVER_ENDING[mode]([])) as store:
        with pytest.raises(ObjectStoreError, match=r"shard-0/a\.duckdb: .* \(no complete answer in time\)"):
            store.objects(nearly_late(_STORED.byte_count)).fetch(_STORED, tmp_path / "a.duckdb")
        with pytest.raises(ObjectStoreError, match=r"\(no complete answer in time\)|answer is too large"):
            store.objects(nearly_late(0)).list("shard-0")
    assert list(tmp_path.iterdir()) == []


def test_no_other_host_gets_a_request(tmp_path: Path) -> None:
    with Store(lambda target: Reply(_CONTENT)) as other:
        for status in (301, 302, 307, 308):
            with Store(lambda target, status=status: Reply(b"", status, {"Location": other.url + target})) as store:
                with pytest.raises(ObjectStoreError, match=f"HTTP status {status}"):
                    store.objects().fetch(_STORED, tmp_path / "a.duckdb")
                with pytest.raises(ObjectStoreError, match=f"HTTP status {status}"):
                    store.objects().list("shard-0")
        assert other.targets == []


def test_listing_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "MOST_LISTED", 3)
    with Store(lambda target: listing("main/shard-0/a", "main/shard-0/b", token="same")) as store:
        with pytest.raises(ObjectStoreError, match="lists more than 3 objects"):
            store.objects().list("shard-0")
    seconds = iter(range(0, 100, 10))
    with Store(lambda target: listing(token="same")) as store:
        with pytest.raises(ObjectStoreError, match="in time"):
            store.objects(lambda: next(seconds, 100.0)).list("shard-0")


def test_pages_of_a_listing_are_read_in_turn() -> None:
    def answer(target: str) -> Reply:
        query = parse_qs(urlsplit(target).query)
        assert query["prefix"] == ["main/shard-0/"]
        if "continuation-token" in query:
            assert query["continuation-token"] == ["a/+ b"]
            return listing("main/shard-0/1/a")
        return listing("main/shard-0/1/", "main/shard-0/b", token="a/+ b")

    with Store(answer) as store:
        assert [found.name for found in store.objects().list("shard-0")] == ["shard-0/1/a", "shard-0/b"]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(b"<Error><Code>InternalError</Code></Error>"), "gives no ListBucketResult"),
        (Reply(b"no XML"), "gives no ListBucketResult"),
        (Reply(b" " * 5_000_000), "answer is too large"),
        (listing("main/shard-1/a"), "lists objects of another prefix"),
    ],
)
def test_false_listing_is_refused(reply: Reply, message: str) -> None:
    with Store(lambda target: reply) as store, pytest.raises(ObjectStoreError, match=message):
        store.objects().list("shard-0")
