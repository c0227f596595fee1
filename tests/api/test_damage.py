"""Lost or damaged serving files and pointers: the newest readable version is served, and readiness is `degraded`."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from api.examples import EXAMPLE_TOKEN_ID
from tests.api.test_errors import problem
from tests.api.test_serving import publish_next
from tests.api.world import World

TOKEN = f"/v1/tokens/{EXAMPLE_TOKEN_ID}"


def file_of(world: World, version: int) -> Path:
    return world.settings.serving_dir / f"marts-{version:012d}.duckdb"


def garbage(world: World) -> None:
    file_of(world, 2).write_bytes(b"<html>" * 100_000)


def gone(world: World) -> None:
    file_of(world, 2).unlink()


@pytest.mark.proof("a damaged version falls back to the previous one")
@pytest.mark.parametrize("damage", [garbage, gone])
def test_damaged_version_falls_back_to_the_previous_one(
    world: World, damage: Callable[[World], None], caplog: pytest.LogCaptureFixture
) -> None:
    publish_next(world, 2, 1)
    if damage is gone:  # an open file is read until a damaged page is needed
        with world.client() as client:
            assert client.get(TOKEN).json()["asOf"]["dataVersion"] == 2
    damage(world)
    with world.client() as client, caplog.at_level(logging.ERROR, "ledgermart.api"):
        answer = client.get(f"{TOKEN}/activities")
        assert answer.status_code == 200
        assert answer.json()["asOf"]["dataVersion"] == 1
        assert len(answer.json()["data"]) == 5
        ready = client.get("/health/ready")
        assert ready.status_code == 200
        assert ready.json()["status"] == "degraded"
        assert ready.json()["detail"] == (
            "the last published version cannot be read; the newest readable version is used until the next publication"
        )
        assert "degraded: the last published version cannot be read" in caplog.text
        # The next published version becomes current and ends the degraded state.
        publish_next(world, 3, 2)
        assert client.get(TOKEN).json()["asOf"]["dataVersion"] == 3
        assert client.get("/health/ready").json() | {"publishedAt": ""} == {
            "status": "ready",
            "detail": None,
            "publishedAt": "",
        }


@pytest.mark.parametrize("content", [None, b'{"version": 2'])
def test_newest_file_is_served_without_the_pointer(world: World, content: bytes | None) -> None:
    publish_next(world, 2, 1)
    pointer = world.settings.serving_dir / "current.json"
    pointer.unlink()
    if content is not None:
        pointer.write_bytes(content)
    with world.client() as client:
        assert client.get(f"{TOKEN}/activities").json()["asOf"]["dataVersion"] == 2
        ready = client.get("/health/ready").json()
        assert ready["status"] == "degraded"
        what = "is missing" if content is None else "cannot be read"
        assert ready["detail"] == (
            f"current.json {what}; the newest readable version is used until the next publication"
        )


def test_pointer_lost_while_serving_degrades_readiness(world: World) -> None:
    with world.client() as client:
        assert client.get("/health/ready").json()["status"] == "ready"
        (world.settings.serving_dir / "current.json").unlink()
        world.clock.look_again()
        assert client.get(TOKEN).status_code == 200
        assert client.get("/health/ready").json()["status"] == "degraded"


def damage_what_is_read_late(path: Path) -> None:
    """Corrupt a block that is not read when the file is opened, but when activities are counted."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("create or replace table many as select t.* from marts.token_activities as t, range(20000)")
        connection.execute("delete from marts.token_activities; insert into marts.token_activities from many")
        connection.execute("drop table many; force checkpoint")
    whole = path.read_bytes()
    read = "select bit_xor(hash(activity_id, transaction_hash, from_address, block_time)) from marts.token_activities"
    for start in range(12_288, len(whole), 262_144):
        path.write_bytes(whole[:start] + bytes(1000) + whole[start + 1000 :])
        try:
            connection = duckdb.connect(str(path), read_only=True)
        except duckdb.IOException:
            continue
        with connection:
            try:
                connection.execute(read).fetchall()
            except duckdb.IOException:
                return
    raise AssertionError("no block is read late")


def test_damage_found_while_reading_fails_one_request_with_503(world: World) -> None:
    """A wrong block checksum: the request that reads the block gets Retry-After, all others succeed."""
    publish_next(world, 2, 1)
    damage_what_is_read_late(file_of(world, 2))
    with world.client() as client:
        answers = [client.get(f"{TOKEN}/activities?limit=1000&minAmount=1") for _ in range(4)]
        problem(answers[0], 503, "version-damaged")
        assert answers[0].headers["retry-after"] == "1"
        assert [answer.json()["asOf"]["dataVersion"] for answer in answers[1:]] == [1, 1, 1]
        assert client.get("/health/ready").json()["status"] == "degraded"
        # The same file is not tried again, even after it was closed.
        world.clock.look_again()
        assert [client.get(f"{TOKEN}/activities").status_code for _ in range(4)] == [200] * 4


def test_no_readable_version_returns_503(world: World) -> None:
    file_of(world, 1).write_bytes(b"garbage")
    with world.client() as client:
        for _ in range(2):
            found = problem(client.get(TOKEN), 503, "not-published")
            assert found["detail"] == "the last published version cannot be read, and no earlier version can be read"
        assert client.get("/health/live").status_code == 200
        problem(client.get("/health/ready"), 503, "not-published")
        assert client.get("/v1/networks/ledgers").status_code == 200


def test_a_cursor_of_a_damaged_version_expires(world: World) -> None:
    with world.client() as client:
        url: Any = client.get(f"{TOKEN}/cap-table?limit=1").links["next"]["url"]
    publish_next(world, 2, 1)
    file_of(world, 1).write_bytes(b"garbage")
    with world.client() as client:
        problem(client.get(url), 410, "cursor-expired")
        assert client.get(TOKEN).json()["asOf"]["dataVersion"] == 2
