"""Requested moments: responses use the prices of that moment and name no block of another tenant."""

import io
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from api.errors import ApiError
from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.http.parameters import Moment
from api.subjects.moments import View, covered_range_at, resolve_covered
from api.subjects.rows import CoverageRow
from tests.api.marts import publish
from tests.api.test_coverage import coverage_rows
from tests.api.test_errors import problem
from tests.api.test_value_history import (
    CAPITALIZATION,
    DAY,
    HOUR,
    NEWEST,
    SUPPLIES,
    VALUES,
    at_block,
    capitalization_status,
    is_covered,
    long_rows,
    price,
    status,
    wallet_value,
)
from tests.api.valued import INSTANT, SMALL_PRICES, naive, price_at, sum_of, value_of, valued_rows
from tests.api.world import HOLDERS, World, copy_world, hash_of, time_of

TOKEN, WALLET = f"/v1/tokens/{EXAMPLE_TOKEN_ID}", f"/v1/wallets/{EXAMPLE_WALLET_ID}"


def text(moment: datetime) -> str:
    """Return an instant as responses show it."""
    return moment.isoformat().replace("+00:00", "Z")


def stored(block: int, *, is_tail: bool = False) -> dict[str, Any]:
    return {
        "network": "ethereum",
        "block_number": block,
        "block_hash": hash_of(block),
        "block_time": naive(time_of(block)),
        "is_tail": is_tail,
    }


# Instants, days and blocks


def test_suggested_covered_moment_is_covered_if_blocks_share_a_second() -> None:
    """The range ends in a second shared with the next block, so that second is not fully collected."""
    last = datetime(2026, 1, 1, 0, 0, 10)  # noqa: DTZ001 - as marts have it
    ranges = [
        CoverageRow(5, 9, last - timedelta(seconds=8), last, is_covered=True, reason=None),
        CoverageRow(10, 20, last, last + timedelta(seconds=9), is_covered=False, reason="TrackingDisabled"),
    ]
    view = View(cast(Any, SimpleNamespace(id="tok_1", is_tracked=False)), [], None, None, ranges, {})
    asked = Moment("asOf", "that second", end=last.replace(tzinfo=UTC) + INSTANT)
    with pytest.raises(ApiError) as refused:
        resolve_covered(cast(Any, None), view, asked)
    assert isinstance(refused.value.before, datetime)
    assert covered_range_at(view, refused.value.before + INSTANT) == ranges[0]


@pytest.mark.parametrize("offset", [timedelta(), INSTANT, timedelta(seconds=11, microseconds=999_999)])
def test_instant_uses_the_newest_block_before_it(valued: World, offset: timedelta) -> None:
    """Block 305 is not stored; the newest earlier block with a movement of the token is 300."""
    moment = time_of(305) + offset
    with valued.client() as client:
        answer = client.get(f"{TOKEN}/cap-table", params={"asOf": text(moment)}).json()
    assert (answer["asOf"]["blockNumber"], answer["asOf"]["blockTime"]) == (300, text(time_of(300)))
    assert answer["asOf"]["at"] == text(moment)
    expected = price_at(SMALL_PRICES, moment)
    assert [row["value"] for row in answer["data"]] == [
        value_of(row["quantity"], expected.price) for row in answer["data"]
    ]


def test_block_without_stored_time_has_no_values(valued: World) -> None:
    with valued.client() as client:
        table = client.get(f"{TOKEN}/cap-table?asOf=block:305").json()
        known = client.get(f"{TOKEN}/cap-table", params={"asOf": text(time_of(305))}).json()
        held = client.get(f"{WALLET}/balances?asOf=block:305").json()["current"]
        explained = client.get(f"{TOKEN}/cap-table?asOf=block:305&explain=true").json()["data"]
    assert {table["asOf"][name] for name in ("blockHash", "blockTime", "at")} == {None}
    assert (table["asOf"]["blockNumber"], table["asOf"]["finality"]) == (305, "Finalized")
    assert [row["quantityRaw"] for row in table["data"]] == [row["quantityRaw"] for row in known["data"]] != []
    assert {(row["value"], row["valueStatus"]) for row in table["data"]} == {(None, "UnknownTime")}
    assert {row["explanation"]["price"] for row in explained} == {None}
    assert {
        row["token"]["symbol"]: (row["value"], row["valueStatus"], row["price"], row["priceStatus"]) for row in held
    } == {
        "ETH": (None, "UnknownTime", None, "UnknownTime"),
    }


def test_block_is_named_if_the_tenants_own_data_has_it(valued: World) -> None:
    """It has a movement, ends a range, is in the tail while tracked, or belongs to another own subject."""
    with valued.client() as client:
        for block in (300, 200, 251, 399):
            told = client.get(f"{TOKEN}/cap-table?asOf=block:{block}").json()["asOf"]
            assert (told["blockTime"], told["at"]) == (text(time_of(block)), text(time_of(block)))
        # The token moved at block 150, the wallet did not.
        assert client.get(f"{WALLET}/balances?asOf=block:150").json()["asOf"]["at"] == text(time_of(150))
        newest = client.get(f"{TOKEN}/cap-table").json()["asOf"]
    assert (newest["blockNumber"], newest["at"]) == (400, text(time_of(400)))


# Blocks stored for other tenants


def test_no_other_tenants_block_is_named(valued: World) -> None:
    """Blocks 304 and 180 are stored for another tenant's token; 60 is tail from before tracking."""
    rows = valued_rows(valued)
    rows["blocks"] += [stored(304), stored(180), stored(60, is_tail=True), stored(302, is_tail=True)]
    rows["coverage"] = [
        row for row in rows["coverage"] if row["subject_key"] != valued.subject_keys[EXAMPLE_TOKEN_ID]
    ] + coverage_rows(valued, EXAMPLE_TOKEN_ID, [(1, 49, "NeverTracked"), (50, 400, None)])
    publish(valued.settings.serving_dir, 2, rows)
    with valued.client() as client:
        for moment, block in ((time_of(304), 302), (time_of(301), 300), (time_of(190), 150), (time_of(61), 50)):
            told = client.get(f"{TOKEN}/cap-table", params={"asOf": text(moment)}).json()["asOf"]
            assert (told["blockNumber"], told["at"]) == (block, text(moment))
        for block, is_known in ((304, False), (180, False), (60, False), (302, True)):
            told = client.get(f"{TOKEN}/cap-table?asOf=block:{block}").json()["asOf"]
            assert (told["blockNumber"], told["blockTime"] is not None) == (block, is_known)


# Sparse chains


def sparse(world: World, after: datetime | None, *, is_awaited: bool = False) -> None:
    """Publish a token tracked until block 400; `after` is the time of the next block, or None without one."""
    rows = valued_rows(world)
    key = world.subject_keys[EXAMPLE_TOKEN_ID]
    covered = coverage_rows(world, EXAMPLE_TOKEN_ID, [(1, 250, "BeforeTracking"), (251, 400, None)])
    if after is not None:
        following = covered[0] | {
            "from_block": 401,
            "to_block": None if is_awaited else 401,
            "reason": "TrackingDisabled",
        }
        covered.append(following | {"from_time": naive(after), "to_time": None if is_awaited else naive(after)})
    rows["coverage"] = [row for row in rows["coverage"] if row["subject_key"] != key] + covered
    publish(world.settings.serving_dir, 2, rows)


def test_range_covers_instants_up_to_the_next_block(valued: World) -> None:
    after = time_of(400) + 9 * HOUR
    sparse(valued, after)
    with valued.client() as client:
        for moment in (time_of(400) + INSTANT, time_of(400) + 5 * HOUR, after - INSTANT):
            answer = client.get(f"{TOKEN}/cap-table", params={"asOf": text(moment)}).json()
            assert (answer["asOf"]["blockNumber"], answer["asOf"]["at"]) == (400, text(moment))
            resolved = price_at(SMALL_PRICES, moment)
            for row in answer["data"]:
                assert (row["value"], row["valueStatus"]) == (
                    value_of(row["quantity"], resolved.price),
                    resolved.status,
                )
        problem(client.get(f"{TOKEN}/cap-table", params={"asOf": text(after)}), 409, "not-covered")


@pytest.mark.parametrize("is_awaited", [True, False])
def test_instants_after_the_newest_block_are_not_covered(valued: World, is_awaited: bool) -> None:
    """A window without a block begins at an instant, and new blocks may still precede it."""
    sparse(valued, time_of(400) + 9 * HOUR if is_awaited else None, is_awaited=is_awaited)
    with valued.client() as client:
        newest = client.get(f"{TOKEN}/cap-table", params={"asOf": text(time_of(400))}).json()["asOf"]
        assert (newest["blockNumber"], newest["at"]) == (400, text(time_of(400)))
        for moment in (time_of(400) + INSTANT, time_of(400) + HOUR):
            problem(client.get(f"{TOKEN}/cap-table", params={"asOf": text(moment)}), 409, "not-covered")


# All answers of one moment


@pytest.fixture(scope="module")
def long(valued_template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The world of the value histories; one holder owns the whole supply, so its value equals the capitalization."""
    made = copy_world(valued_template, tmp_path_factory.mktemp("moments"))
    rows = long_rows(made)
    key = made.subject_keys[EXAMPLE_TOKEN_ID]
    rows["balance_changes"] += [
        rows["balance_changes"][0]
        | {name: row[name] for name in ("subject_key", "range_from_block", "block_number", "block_time")}
        | {"token_address": "0x" + "5" * 40, "holder_address": HOLDERS["h2"]}
        | {"balance_raw": str(row["total_supply_raw"]), "balance": row["total_supply"]}
        for row in rows["supply_changes"]
        if row["subject_key"] == key
    ]
    known = {row["block_number"] for row in rows["blocks"]}
    named = {row["block_number"] for row in (*rows["balance_changes"], *rows["supply_changes"])}
    named |= {row[name] for row in rows["coverage"] for name in ("from_block", "to_block")}
    rows["blocks"] += [stored(block) for block in sorted(named - known)]
    publish(made.settings.serving_dir, 1, rows)
    with made.client() as client:
        yield client
    made.store.close()


def moments() -> list[str]:
    """Return random instants and days in a view with stored blocks that lie days apart."""
    drawn = random.Random(11)
    first = time_of(100)
    instants = [first + timedelta(microseconds=drawn.randrange((NEWEST - first) // INSTANT)) for _ in range(12)]
    hours = [first.replace(minute=0, second=0, microsecond=0) + HOUR * drawn.randrange(24 * 41) for _ in range(8)]
    days = [f"2026-{2 + day // 28:02d}-{1 + day % 28:02d}" for day in range(0, 41, 4)]
    return [text(one) for one in instants] + [text(one - INSTANT) for one in hours] + days


def end_of(moment: str) -> datetime:
    if "T" in moment:
        return datetime.fromisoformat(moment) + INSTANT
    return datetime.fromisoformat(f"{moment}T00:00:00+00:00") + DAY


@pytest.mark.proof("all answers of one moment agree")
@pytest.mark.parametrize("moment", moments())
def test_all_answers_of_one_moment_agree(long: Any, moment: str) -> None:
    """Compare cap table, balances, capitalization and value history with plain decimals and each other."""
    end = end_of(moment)
    at = end - INSTANT
    table = long.get(f"{TOKEN}/cap-table", params={"asOf": moment})
    held = long.get(f"{WALLET}/balances", params={"asOf": moment})
    if not is_covered(end):
        for answer in (table, held):
            problem(answer, 409, "not-covered")
        return
    for answer in (table, held):
        told = answer.json()["asOf"]
        assert told["at"] == text(at)
        assert datetime.fromisoformat(told["blockTime"]) < end
    supply = str(at_block(SUPPLIES, at))
    assert table.json()["totalSupply"] == supply
    worth = (value_of(supply, price(at)), status(at))
    assert [(row["value"], row["valueStatus"]) for row in table.json()["data"]] == ([worth] if supply != "0" else [])
    value, value_status, unpriced = wallet_value(at)
    current = held.json()["current"]
    assert sorted(row["token"]["symbol"] for row in current if row["value"] is None) == unpriced
    priced = [row["value"] for row in current if row["value"] is not None]
    assert (sum_of(priced) if priced or not current else None) == value

    if end.minute or end.second or end.microsecond:
        return
    interval, span = ("1d", DAY) if "T" not in moment else ("1h", HOUR)
    asked = {"interval": interval, "from": text(end - span), "to": text(end)}
    (point,) = long.get(CAPITALIZATION, params=asked).json()["history"]
    assert (point["supply"], point["price"], point["isComplete"]) == (supply, price(at), True)
    assert (point["value"], point["valueStatus"]) == (worth[0], capitalization_status(int(supply), at))
    assert point["supplyStatus"] == table.json()["totalSupplyStatus"]
    (point,) = long.get(VALUES, params=asked).json()["points"]
    assert (point["value"], point["valueStatus"], point["unpriced"]) == (value, value_status, unpriced)
    for series in long.get(f"{WALLET}/balances", params=asked).json()["history"]:
        (shown,) = series["points"]
        row = next((one for one in current if one["token"] == series["token"]), None)
        if row is not None:
            assert (shown["quantity"], shown["value"], shown["isComplete"]) == (row["quantity"], row["value"], True)


def test_files_have_the_as_of_moment_and_its_values(long: Any) -> None:
    for moment in ("2026-02-25", "2026-02-25T13:00:00Z"):
        expected = long.get(f"{TOKEN}/cap-table", params={"asOf": moment}).json()
        assert expected["asOf"]["at"] == text(end_of(moment) - INSTANT)
        for form in ("text/csv", "application/x-ndjson", "application/vnd.apache.parquet"):
            answer = long.get(f"{TOKEN}/cap-table", params={"asOf": moment}, headers={"Accept": form})
            assert json.loads(answer.headers["x-as-of"]) == expected["asOf"]
        file = pq.read_table(io.BytesIO(answer.content))
        assert json.loads(file.schema.metadata[b"asOf"]) == expected["asOf"]
        assert file["value"].to_pylist() == [row["value"] for row in expected["data"]]
