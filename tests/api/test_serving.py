"""Published versions: switching, pinned cursors, expiry, statement limits, and the marts' contract."""

import base64
import gc
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest
from litestar.testing import TestClient

from api.engine.query_texts import load_queries, over
from api.engine.rows import Row
from api.engine.serving import Serving
from api.engine.tables import Table
from api.errors import ApiError
from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.http import media_types
from api.http.paging import CursorCipher, Key, Position, cursor_scope
from api.networks.rows import NetworkRow
from api.subjects.rows import BlockRow
from control.clock import utc_now
from tests.api.marts import publish
from tests.api.test_errors import problem
from tests.api.world import World, marts_rows
from tests.e2e.serving import serving
from tests.waiting import eventually

TOKEN = f"/v1/tokens/{EXAMPLE_TOKEN_ID}"


def publish_next(world: World, version: int, kept_activities: int) -> None:
    """Publish a version with the first activities of the first token; the next request reads it."""
    rows = marts_rows(world)
    own = [row for row in rows["token_activities"] if row["token_id"] == EXAMPLE_TOKEN_ID]
    rows["token_activities"] = own[:kept_activities]
    publish(world.settings.serving_dir, version, rows)
    world.clock.look_again()


def test_newest_version_is_served(world: World, client: TestClient[Any]) -> None:
    assert client.get(TOKEN).json()["asOf"]["dataVersion"] == 1
    publish_next(world, 2, 3)
    answer = client.get(f"{TOKEN}/activities").json()
    assert answer["asOf"]["dataVersion"] == 2
    assert len(answer["data"]) == 3


def test_cursors_of_the_cap_table_stay_within_their_version(world: World, client: TestClient[Any]) -> None:
    whole = client.get(f"{TOKEN}/cap-table").json()["data"]
    url = client.get(f"{TOKEN}/cap-table?limit=1").links["next"]["url"]
    publish_next(world, 2, 1)
    rest: list[Any] = []
    while url:
        answer = client.get(url)
        assert answer.json()["asOf"]["dataVersion"] == 1
        rest += answer.json()["data"]
        url = answer.links["next"]["url"] if "next" in answer.links else ""
    assert rest == whole[1:]


@pytest.mark.parametrize("was_open", [True, False])
def test_cursors_of_a_removed_version_expire(world: World, was_open: bool) -> None:
    with world.client() as client:
        url = client.get(f"{TOKEN}/cap-table?limit=1").links["next"]["url"]
        publish_next(world, 2, 1)
        assert client.get(url).status_code == 200
    with world.client() as client:
        if was_open:
            assert client.get(url).status_code == 200
        (world.settings.serving_dir / "marts-000000000001.duckdb").unlink()
        problem(client.get(url), 410, "cursor-expired")
        assert client.get(f"{TOKEN}/cap-table").status_code == 200


def make_another_release_s(path: Path) -> None:
    """Drop the table `token_holders`, which earlier releases did not publish."""
    path.chmod(0o600)
    with duckdb.connect(str(path)) as connection:
        connection.execute("drop table marts.token_holders; force checkpoint")


@pytest.mark.parametrize("accept", ["application/json", "text/csv"])
def test_data_missing_in_an_old_version_returns_503_until_the_next(world: World, accept: str) -> None:
    make_another_release_s(world.settings.serving_dir / "marts-000000000001.duckdb")
    with world.client() as client:
        answer = client.get(f"{TOKEN}/cap-table", headers={"Accept": accept})
        found = problem(answer, 503, "not-published")
        assert found["detail"] == (
            "another release published the present version, which lacks data for this answer; "
            "the next cycle publishes a complete version"
        )
        assert answer.headers["retry-after"] == "5"
        # Data that this version has is served.
        assert client.get(f"{TOKEN}/activities").status_code == 200
        assert client.get("/health/ready").status_code == 200
        publish_next(world, 2, 1)
        assert client.get(f"{TOKEN}/cap-table", headers={"Accept": accept}).status_code == 200


def test_cursors_of_a_version_of_another_release_expire(world: World) -> None:
    with world.client() as client:
        url = client.get(f"{TOKEN}/cap-table?limit=1").links["next"]["url"]
    make_another_release_s(world.settings.serving_dir / "marts-000000000001.duckdb")
    publish_next(world, 2, 1)
    with world.client() as client:
        problem(client.get(url), 410, "cursor-expired")


def test_wrong_query_parameter_is_not_taken_for_another_release(world: World) -> None:
    serving = Serving(world.settings.serving_dir, 200, 900, queries={"bad": "select $number + 1 as number"})
    try:
        with serving.snapshot() as snapshot, pytest.raises(duckdb.Error):
            snapshot.rows("bad", BlockRow, number=[1])
    finally:
        serving.close()


@pytest.mark.parametrize("key", [("0x01", 1), (1,), (1, 1, "0x01"), (1, "1", "0x01", 1)])
def test_cursor_with_a_key_of_another_form_is_refused(world: World, client: TestClient[Any], key: Key) -> None:
    """Earlier releases issued such cursors."""
    path = f"{TOKEN}/cap-table"
    answer = client.get(f"{path}?limit=1")
    services = client.app.state.services
    cipher, epoch = services.cursor_cipher(), services.shards.of(0).epoch()
    request: Any = type("Request", (), {"scope": {"path": path, "query_string": b""}})()
    scope = cursor_scope(request, world.tenant_id, utc_now())
    now = cipher.decrypt(scope, epoch, answer.json()["page"]["nextCursor"])
    cursor = cipher.encrypt(scope, epoch, Position(now.version, key))
    problem(client.get(f"{path}?limit=1&cursor={cursor}"), 400, "bad-cursor")


@pytest.mark.parametrize("change", ["tampered", "filter", "route", "garbage", "another key"])
def test_forged_cursors_are_refused(client: TestClient[Any], change: str) -> None:
    cursor = client.get(f"{TOKEN}/activities?limit=1").json()["page"]["nextCursor"]
    flipped = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    url = {
        "tampered": f"{TOKEN}/activities?cursor={flipped}",
        "filter": f"{TOKEN}/activities?type=Mint&cursor={cursor}",
        "route": f"{TOKEN}/cap-table?cursor={cursor}",
        "garbage": f"{TOKEN}/activities?cursor=%00%FF",
        "another key": f"{TOKEN}/activities?cursor={CursorCipher(b'x' * 32).encrypt(b'', '', Position(1, (1,)))}",
    }[change]
    assert problem(client.get(url), 400, "bad-cursor")["errors"][0]["parameter"] == "cursor"


@pytest.mark.parametrize("path", [f"{TOKEN}/activities", f"{TOKEN}/cap-table", "/v1/tokens", "/v1/networks/ledgers"])
def test_cursor_of_another_epoch_expires(world: World, client: TestClient[Any], path: str) -> None:
    """Versions published after a restore reuse numbers that old cursors contain."""
    url = client.get(f"{path}?limit=1").links["next"]["url"]
    assert client.get(url).status_code == 200
    publish(world.settings.serving_dir, 2, marts_rows(world), epoch="second")
    world.clock.look_again()
    problem(client.get(url), 410, "cursor-expired")
    assert client.get(client.get(f"{path}?limit=1").links["next"]["url"]).status_code == 200


@pytest.mark.parametrize("accept", ["application/json", "text/csv"])
@pytest.mark.parametrize("path", [f"{TOKEN}/activities", "/v1/priced-items"])
def test_etag_depends_on_the_epoch(world: World, path: str, accept: str) -> None:
    with world.client() as client:
        known = {"Accept": accept, "If-None-Match": client.get(path, headers={"Accept": accept}).headers["etag"]}
        assert client.get(path, headers=known).status_code == 304
    publish(world.settings.serving_dir, 1, marts_rows(world), epoch="second")
    with world.client() as client:
        assert client.get(path, headers=known).status_code == 200


def publish_numbered(world: World, version: int, numbers: dict[str, list[int]], kept_activities: int = 5) -> None:
    """Publish a version with tenants' data versions: per caller, the newest version before each of them."""
    rows = marts_rows(world)
    own = [row for row in rows["token_activities"] if row["token_id"] == EXAMPLE_TOKEN_ID]
    rows["token_activities"] = own[:kept_activities]
    rows["tenant_versions"] = [
        {
            "tenant_id": world.principals[caller].tenant_id,
            "data_version": number,
            "after_version": after,
            "raised_at": "2026-03-01 00:00:00",
        }
        for caller, afters in numbers.items()
        for number, after in enumerate(afters, start=1)
    ]
    publish(world.settings.serving_dir, version, rows)
    world.clock.look_again()


@pytest.mark.ci
@pytest.mark.parametrize("accept", ["application/json", "text/csv"])
def test_changes_of_other_tenants_change_neither_data_version_nor_etag(
    world: World, client: TestClient[Any], accept: str
) -> None:
    paths = [f"{TOKEN}/activities", f"{TOKEN}/cap-table", "/v1/tokens", "/v1/networks", "/v1/priced-items"]
    publish_numbered(world, 2, {"admin": [0], "foreign": [0]})
    etags = [client.get(path, headers={"Accept": accept}).headers["etag"] for path in paths]
    publish_numbered(world, 3, {"admin": [0], "foreign": [0, 2]})
    for path, etag in zip(paths, etags, strict=True):
        assert client.get(path, headers={"Accept": accept, "If-None-Match": etag}).status_code == 304
    assert client.get(TOKEN).json()["asOf"]["dataVersion"] == 1
    assert client.get("/v1/tokens", headers=world.headers("foreign")).json()["asOf"]["dataVersion"] == 2
    publish_numbered(world, 4, {"admin": [0, 3], "foreign": [0, 2]}, kept_activities=1)
    answer = client.get(paths[0], headers={"Accept": accept, "If-None-Match": etags[0]})
    assert answer.status_code == 200
    assert client.get(TOKEN).json()["asOf"]["dataVersion"] == 2


@pytest.mark.ci
def test_data_version_opens_the_newest_version_that_shows_it(world: World) -> None:
    for version, numbers in ((1, [0]), (2, [0]), (3, [0, 2]), (4, [0, 2, 3]), (5, [0, 2, 3, 3])):
        publish_numbered(world, version, {"admin": numbers})
    serving = Serving(world.settings.serving_dir, 200, 900)

    def opened(number: int | None) -> int:
        with serving.tenant_snapshot(world.tenant_id, number) as snapshot:
            return snapshot.version

    try:
        assert [opened(number) for number in (None, 1, 2, 4)] == [5, 2, 3, 5]
        (world.settings.serving_dir / "marts-000000000002.duckdb").unlink()
        assert opened(1) == 1
        # No version shows data version 3, and 5 does not exist yet.
        for number in (0, 3, 5):
            with pytest.raises(ApiError) as raised:
                opened(number)
            assert raised.value.status == 410
    finally:
        serving.close()


def test_data_version_is_0_before_the_first_build_of_a_tenant(world: World, client: TestClient[Any]) -> None:
    publish_numbered(world, 2, {"foreign": [0]})
    assert client.get(TOKEN).json()["asOf"]["dataVersion"] == 0


def test_version_of_the_previous_release_has_no_data_versions(world: World) -> None:
    path = world.settings.serving_dir / "marts-000000000001.duckdb"
    path.chmod(0o600)
    with duckdb.connect(str(path)) as connection:
        connection.execute("drop table marts.tenant_versions; drop table marts.publication; force checkpoint")
    with world.client() as client:
        assert client.get(TOKEN).json()["asOf"]["dataVersion"] == 0


def test_cursor_is_opaque(client: TestClient[Any]) -> None:
    """It reveals neither its key nor its version, which would show changes of other tenants."""
    answers = [client.get(f"{TOKEN}/activities?limit=1").json() for _ in range(2)]
    cursor = answers[0]["page"]["nextCursor"]
    assert cursor == answers[1]["page"]["nextCursor"], "equal answers are equal to the byte"
    shown = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    cipher = CursorCipher(b"x" * 32)
    texts = [cipher.encrypt(b"", "", Position(version, ("0x01", 1))) for version in (1, 2)]
    assert len(texts[0]) == len(texts[1])
    assert sum(one == other for one, other in zip(*texts, strict=True)) < len(texts[0]) / 4
    assert answers[0]["data"][0]["id"].encode() not in shown


def test_cursor_works_with_another_limit(client: TestClient[Any]) -> None:
    cursor = client.get(f"{TOKEN}/activities?limit=1").json()["page"]["nextCursor"]
    assert len(client.get(f"{TOKEN}/activities?limit=100&cursor={cursor}").json()["data"]) == 4


@pytest.mark.ci
def test_switching_under_load(world: World) -> None:
    """Readers page and stream while versions change, without errors or mixed versions."""
    problems: list[str] = []
    seen: set[int] = set()
    stop = threading.Event()

    def read(client: TestClient[Any], accept: str) -> None:
        while not stop.is_set():
            answer = client.get(f"{TOKEN}/activities", headers={"Accept": accept})
            if answer.status_code != 200:
                problems.append(answer.text)
                return
            if accept == "application/json":
                version, count = answer.json()["asOf"]["dataVersion"], len(answer.json()["data"])
                seen.add(version)
                if count != (5 if version == 1 else version % 4):
                    problems.append(f"version {version} had {count} rows")

    with world.client() as client:
        readers = [
            threading.Thread(target=read, args=(client, accept))
            for accept in ("application/json", "application/json", "text/csv")
        ]
        for reader in readers:
            reader.start()
        eventually(lambda: bool(seen or problems), "the first version is read")
        for version in range(2, 7):
            publish_next(world, version, version % 4)
            if version > 3:
                (world.settings.serving_dir / f"marts-{version - 2:012d}.duckdb").unlink()
        eventually(lambda: bool(6 in seen or problems), "the last version is read")
        stop.set()
        for reader in readers:
            reader.join()
    assert not problems
    assert seen >= {1, 6}


def open_versions(world: World) -> int:
    """Count the versions of which this process has the file open."""
    opened = {str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()}
    return sum(str(path) in opened for path in world.settings.serving_dir.glob("marts-*.duckdb"))


def test_versions_are_closed_when_idle(world: World) -> None:
    serving = Serving(world.settings.serving_dir, 256, 900, world.clock)
    try:
        for version in range(1, 9):
            if version > 1:
                publish(world.settings.serving_dir, version, {})
            world.clock.look_again()
            with serving.snapshot() as snapshot:
                assert snapshot.version == version
        assert 1 < open_versions(world) <= 5
    finally:
        serving.close()


def test_version_in_use_stays_open(world: World) -> None:
    serving = Serving(world.settings.serving_dir, 256, 900, world.clock)
    try:
        with serving.snapshot() as old:
            for version in range(2, 9):
                publish(world.settings.serving_dir, version, {})
                (world.settings.serving_dir / f"marts-{version - 1:012d}.duckdb").unlink()
                world.clock.look_again()
                with serving.snapshot():
                    pass
            assert old.rows("networks", NetworkRow)
    finally:
        serving.close()


SLOW = "select sum(a.range + b.range) as block_number from range(10000000) a, range(1000000) b"


@pytest.mark.ci
@pytest.mark.parametrize("accept", [media_types.CSV, media_types.NDJSON, media_types.PARQUET])
def test_abandoned_download_releases_its_version(world: World, accept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does so at once, not in garbage collection, which may run in a thread that holds the versions' lock."""
    open_now = 0
    snapshot_of = Serving.snapshot

    @contextmanager
    def counted(*arguments: Any) -> Iterator[Any]:
        nonlocal open_now
        open_now += 1
        try:
            with snapshot_of(*arguments) as snapshot:
                yield snapshot
        finally:
            open_now -= 1

    monkeypatch.setattr(Serving, "snapshot", counted)
    for size in ("batch_rows", "column_rows"):
        monkeypatch.setattr(f"api.http.calls.Services.{size}", 1)
    with serving(world.settings) as url, httpx.Client(base_url=url, headers=world.headers()) as client:
        gc.disable()
        try:
            # The client disconnects after the first piece.
            for path in ("activities", "cap-table"):
                answer = client.head(f"/v1/tokens/{EXAMPLE_TOKEN_ID}/{path}", headers={"Accept": accept})
                assert answer.status_code == 200
            eventually(lambda: not open_now, "versions are given back")
        finally:
            gc.enable()


def test_a_slow_statement_is_interrupted(world: World) -> None:
    serving = Serving(world.settings.serving_dir, 256, 2, queries={**load_queries(), "slow": SLOW})
    try:
        with serving.snapshot() as snapshot:
            # The full statement would take days.
            with pytest.raises(ApiError) as caught:
                snapshot.rows("slow", BlockRow)
            assert (caught.value.status, caught.value.code) == (503, "query-timeout")
            assert "LEDGERMART_QUERY_TIMEOUT_SECONDS" in caught.value.detail
            # On a stalled machine another statement may exceed the limit.
            found: list[NetworkRow] = []

            def is_read() -> bool:
                with suppress(ApiError):
                    found.extend(snapshot.rows("networks", NetworkRow))
                return bool(found)

            eventually(is_read, "the next statement is answered")
    finally:
        serving.close()


def test_a_query_has_a_memory_limit(world: World) -> None:
    large = "select list(range) as block_number from range(100000000)"
    serving = Serving(world.settings.serving_dir, 64, 900, queries={"large": large})
    try:
        with serving.snapshot() as snapshot, pytest.raises(ApiError) as caught:
            snapshot.rows("large", BlockRow)
        assert (caught.value.status, caught.value.code) == (503, "query-memory")
    finally:
        serving.close()


def test_queries_can_neither_write_nor_read_other_files(world: World) -> None:
    bad = {
        "write": "delete from marts.tokens",
        "file": "select * from read_text('/etc/hostname')",
        "setting": "set memory_limit = '9GB'",
        "attach": "attach ':memory:' as other",
    }
    serving = Serving(world.settings.serving_dir, 256, 900, queries=bad)
    try:
        with serving.snapshot() as snapshot:
            for name in bad:
                with pytest.raises(duckdb.Error):
                    snapshot.rows(name, BlockRow)
    finally:
        serving.close()


def test_queries_read_only_marts_and_use_no_approximation() -> None:
    for name, text in load_queries().items():
        words = text.replace("(", " ").split()
        for word, following in pairwise(words):
            if word in ("from", "join") and "." in following:
                assert following.startswith("marts."), name
        assert "_approx" not in text, name


def _subclasses(row: type[Row]) -> Iterator[type[Row]]:
    for kind in row.__subclasses__():
        yield kind
        yield from _subclasses(kind)


def test_columns_of_every_query_match_the_contract(world: World) -> None:
    """Each row struct names its queries in its docstring; DuckDB describes their columns and types."""
    declared: dict[str, type[Row]] = {}
    for kind in _subclasses(Row):
        for quoted in (kind.__doc__ or "").split("`")[1::2]:
            for name in load_queries():
                if name == quoted or (quoted.endswith("*") and name.startswith(quoted[:-1])):
                    declared.setdefault(name, kind)
    queries = load_queries()
    # Queries that other queries read as tables, with the table names used there.
    read_as = {
        "holders_now": "holders",
        "holders_as_of": "holders",
        "holder_matches": "holders",
        "holders_before": "before",
        "holders_shown": "shown",
        "cap_table_balances": "balances_at_both",
        "report_places": "places",
        "report_order_ascending": "ordered",
        "report_order_descending": "ordered",
    }
    assert set(declared) == set(queries) - set(read_as)
    path = world.settings.serving_dir / "marts-000000000001.duckdb"
    with duckdb.connect(str(path), read_only=True) as connection:
        connection.execute("attach ':memory:' as kept (read_write)")

        def tables(text: str, made: Mapping[str, Table]) -> dict[str, Table]:
            return {name: table for name, table in made.items() if re.search(rf"(from|join) {name}\b", text)}

        def execute(text: str) -> Sequence[Any]:
            statement = connection.extract_statements(text)[0]
            found = connection.execute(statement, dict.fromkeys(statement.named_parameters)).description
            assert found is not None
            return found

        made: dict[str, Table] = {}
        for name, known_as in read_as.items():
            table = Table(f"kept.{name}")
            execute(f"create table {table.name} as {over(tables(queries[name], made), queries[name])}")
            made[known_as] = table
        for name, kind in declared.items():
            columns = execute(over(tables(queries[name], made), queries[name]))
            assert tuple(column[0] for column in columns) == kind.__struct_fields__, name
            assert not {str(column[1]) for column in columns} & {"DOUBLE", "FLOAT", "BIGNUM"}, name


def test_cached_results_belong_to_one_version(world: World) -> None:
    with world.client() as client:
        before = client.get(f"{TOKEN}/cap-table?asOf=block:305").json()
        rows = marts_rows(world)
        rows["balance_changes"] = [row for row in rows["balance_changes"] if row["block_number"] != 300]
        publish(world.settings.serving_dir, 2, rows)
        world.clock.look_again()
        after = client.get(f"{TOKEN}/cap-table?asOf=block:305").json()
    assert (before["holderCount"], before["concentration"]["hhi"]) == (3, "4062.5")
    assert (after["holderCount"], after["concentration"]["hhi"]) == (3, "4062.5")
    assert before["data"] != after["data"]


def test_requests_of_threads_do_not_share_cursors(world: World) -> None:
    query = (
        "select block_number, block_hash, block_time from marts.blocks "
        "where network = 'ethereum' and block_number = $block_number"
    )
    serving = Serving(world.settings.serving_dir, 256, 900, queries={"one_block": query})
    errors: list[BaseException] = []

    def read() -> None:
        try:
            for block in range(390, 411):
                with serving.snapshot() as snapshot:
                    found = snapshot.row("one_block", BlockRow, block_number=block)
                    assert found is not None
                    assert found.block_number == block
        except BaseException as error:  # noqa: BLE001 - passed to the test's own thread
            errors.append(error)

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
        serving.close()
    assert not errors


def test_a_timeout_becomes_a_problem(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = dict(load_queries())
    queries["wallet_activities_newest_first"] = queries["wallet_activities_newest_first"].replace(
        "amount,\n", f"(select block_number::varchar from ({SLOW})) as amount,\n"
    )
    monkeypatch.setattr("api.engine.serving.load_queries", lambda: queries)
    with world.client(settings=replace(world.settings, query_timeout_seconds=1)) as client:
        answer = client.get(f"/v1/wallets/{EXAMPLE_WALLET_ID}/activities")
        problem(answer, 503, "query-timeout")
        assert answer.headers["retry-after"] == "5"
