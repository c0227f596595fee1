"""Market capitalization and wallet value by interval, compared point by point with plain Python.

The view is covered from 1 February to 10 February 17:00 and from 12 February 19:00 to 14 March 15:40, where the newest
block is. The price changes every day at noon; from 20 to 22 February there is none.
"""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from tests.api.marts import publish
from tests.api.test_errors import problem
from tests.api.valued import (
    ETHER_PAIR_KEY,
    INSTANT,
    SMALL_PAIR_ID,
    SMALL_PAIR_KEY,
    naive,
    sum_of,
    value_of,
    valued_rows,
)
from tests.api.world import HOLDERS, World, copy_world, hash_of, time_of

CAPITALIZATION = f"/v1/tokens/{EXAMPLE_TOKEN_ID}/market-capitalization"
VALUES = f"/v1/wallets/{EXAMPLE_WALLET_ID}/value-history"

RANGES = ((100, 70_000), (85_000, 300_000))
NEWEST = time_of(300_000)
GAP = (time_of(70_000), time_of(85_000))
UNPRICED = (datetime(2026, 2, 20, 12, tzinfo=UTC), datetime(2026, 2, 22, 12, tzinfo=UTC))
SUPPLIES = ((99, 1000), (20_000, 1250), (84_999, 1300), (150_000, 0), (160_000, 10**60))
# Minted there, and not read before the gap.
UNREAD = 20_000
ETHER = ((99, "1.5"), (30_000, "2.25"), (84_999, "0"), (130_000, "3"), (200_000, "0.000000000000000001"))
STRANGE = ((250_000, "7"),)  # an asset without a pair

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def price(moment: datetime) -> str | None:
    """Return the price at a moment: 1.01 from the first noon, plus 0.01 at every following one."""
    if UNPRICED[0] <= moment < UNPRICED[1]:
        return None
    steps = (moment - datetime(2026, 1, 31, 12, tzinfo=UTC)) // DAY
    return f"{1 + steps // 100}.{steps % 100:02d}".rstrip("0").rstrip(".") if steps >= 0 else None


def status(moment: datetime) -> str:
    if price(moment) is not None:
        return "Priced"
    return "StalePrice" if moment >= UNPRICED[0] else "NoPrice"


def supply_status(supply: int) -> str:
    if supply == dict(SUPPLIES)[UNREAD]:
        return "Unconfirmed"
    return "Observed" if supply else "ZeroSupply"


def capitalization_status(supply: int, moment: datetime) -> str:
    is_unconfirmed = status(moment) == "Priced" and supply_status(supply) == "Unconfirmed"
    return "Unconfirmed" if is_unconfirmed else status(moment)


def at_block(changes: tuple[tuple[int, Any], ...], moment: datetime) -> Any:
    """Return the value after the last change before a moment in its covered range; None without one."""
    first = max((begin for begin, _ in RANGES if time_of(begin) <= moment), default=None)
    known = [value for block, value in changes if first is not None and block >= first - 1 and time_of(block) <= moment]
    return known[-1] if known else None


def is_covered(end: datetime) -> bool:
    """Return whether the last moment before an instant is covered."""
    return any(time_of(first) < end <= time_of(last) + INSTANT for first, last in RANGES)


def long_rows(world: World) -> dict[str, list[dict[str, Any]]]:
    rows = valued_rows(world)
    token, wallet = world.subject_keys[EXAMPLE_TOKEN_ID], world.subject_keys[EXAMPLE_WALLET_ID]
    for name in ("tokens", "wallets"):
        for row in rows[name]:
            if row["as_of_block_number"] is not None:
                row |= {"as_of_block_number": 300_000, "as_of_block_hash": hash_of(300_000)}
                row["as_of_block_time"] = naive(NEWEST)
    rows["coverage"] = [
        {
            "tenant_id": world.tenant_id,
            "subject_key": key,
            "from_block": first,
            "to_block": last,
            "from_time": naive(time_of(first)),
            "to_time": naive(time_of(last)),
            "is_covered": reason is None,
            "reason": reason,
        }
        for key in (token, wallet)
        for first, last, reason in (
            (0, 99, "BeforeTracking"),
            (*RANGES[0], None),
            (70_001, 84_999, "TrackingDisabled"),
            (*RANGES[1], None),
        )
    ]
    noons = [datetime(2026, 1, 31, 12, tzinfo=UTC) + DAY * number for number in range(43)]
    rows["system_prices"] = [
        {
            "tenant_id": world.tenant_id,
            "pair_key": key,
            "valid_from": naive(noon),
            "valid_until": naive(noon + DAY) if noon != noons[-1] else None,
            "price": price(noon),
            "price_text": price(noon),
            "price_status": status(noon),
            "source_id": "src_kraken",
            "position": 0,
            "is_fallback": False,
            "effective_from": naive(noon),
            "is_partial": False,
            "derivation": "Direct",
        }
        for key in (SMALL_PAIR_KEY, ETHER_PAIR_KEY)
        for noon in noons
    ]
    rows["supply_changes"] = [
        {
            "tenant_id": world.tenant_id,
            "subject_key": token,
            "range_from_block": max(first for first, _ in RANGES if block >= first - 1),
            "block_number": block,
            "block_time": naive(time_of(block)),
            "total_supply_raw": supply,
            "total_supply": str(supply),
            "is_moved": block not in (99, 84_999),
            "is_observed": block != UNREAD,
            "is_checked": block != UNREAD,
            "is_adjusted": False,
            "opened_by": "Observed",
        }
        for block, supply in SUPPLIES
    ]
    rows["balance_changes"] = [
        {
            "tenant_id": world.tenant_id,
            "subject_key": wallet,
            "range_from_block": max(first for first, _ in RANGES if block >= first - 1),
            "token_address": address,
            "token_symbol": symbol,
            "holder_address": HOLDERS["h1"],
            "block_number": block,
            "block_time": naive(time_of(block)),
            "balance_raw": str(int(balance.replace(".", ""))),
            "balance": balance,
            "is_moved": True,
            "is_observed": block in (99, 84_999),
            "is_checked": block in (99, 84_999),
            "is_adjusted": False,
            "opened_by": "Observed",
        }
        for address, symbol, changes in (("native", "ETH", ETHER), ("0x" + "7" * 40, "ODD", STRANGE))
        for block, balance in changes
    ]
    for row in rows["token_prices"]:
        if row["subject_key"] == token:
            row |= {"price_text": price(NEWEST), "price_status": "Priced"}
            row["market_capitalization"] = value_of(str(10**60), price(NEWEST))
    for row in rows["tokens"]:
        if row["subject_key"] == token:
            row |= {"total_supply_raw": 10**60, "total_supply": str(10**60)}
            row |= {"total_supply_status": "Observed", "behaviour": "Standard"}
    value, value_status, unpriced = wallet_value(NEWEST)
    for row in rows["wallet_totals"]:
        if row["subject_key"] == wallet:
            row |= {"total_value": value, "total_value_status": value_status, "unpriced": unpriced}
            row["value_complete"] = not unpriced
    ends = [datetime(2026, 2, 1, tzinfo=UTC) + DAY * number for number in range(1, 42)]
    covered = [end for end in ends if is_covered(end)]
    rows["token_value_days"] = [
        {
            "tenant_id": world.tenant_id,
            "subject_key": token,
            "range_from_block": max(first for first, _ in RANGES if time_of(first) < end),
            "day": (end - DAY).date(),
            "pair_key": SMALL_PAIR_KEY,
            "supply_raw": at_block(SUPPLIES, end - INSTANT),
            "supply": str(at_block(SUPPLIES, end - INSTANT)),
            "price_text": price(end - INSTANT),
            "price_status": status(end - INSTANT),
            "value": value_of(str(at_block(SUPPLIES, end - INSTANT)), price(end - INSTANT)),
            "value_status": status(end - INSTANT),
        }
        for end in covered
    ]
    rows["wallet_value_days"] = [
        {
            "tenant_id": world.tenant_id,
            "subject_key": wallet,
            "day": (end - DAY).date(),
            "value": wallet_value(end - INSTANT)[0],
            "value_status": wallet_value(end - INSTANT)[1],
            "value_complete": not wallet_value(end - INSTANT)[2],
            "unpriced": wallet_value(end - INSTANT)[2],
            "holdings_complete": False,
        }
        for end in covered
    ]
    return rows


def wallet_value(moment: datetime) -> tuple[str | None, str, list[str]]:
    """Return value, status and unpriced positions of the wallet at a covered moment."""
    ether, odd = at_block(ETHER, moment), at_block(STRANGE, moment)
    held = [
        (symbol, value_of(quantity, price(moment)) if symbol == "ETH" else None)
        for symbol, quantity in (("ETH", ether), ("ODD", odd))
        if quantity not in (None, "0")
    ]
    priced = [value for _, value in held if value is not None]
    unpriced = [symbol for symbol, value in held if value is None]
    if priced or not held:
        return sum_of(priced), "Priced", unpriced
    return None, status(moment) if "ETH" in unpriced else "NoPair", unpriced


@pytest.fixture(scope="module")
def long_template(valued_template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = copy_world(valued_template, tmp_path_factory.mktemp("long"))
    publish(made.settings.serving_dir, 1, long_rows(made))
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def client(long_template: World) -> Iterator[Any]:
    with long_template.client() as client:
        yield client


def starts(interval: str, begin: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """Return the started intervals that overlap a range, found hour by hour."""

    def floor(moment: datetime) -> datetime:
        if interval == "1h":
            return moment.replace(minute=0, second=0, microsecond=0)
        day = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
        return {"1d": day, "1w": day - DAY * day.weekday(), "1M": day.replace(day=1)}[interval]

    found: list[tuple[datetime, datetime]] = []
    moment = floor(begin)
    while moment < end and moment <= NEWEST:
        following = moment + HOUR
        while floor(following) == moment:
            following += HOUR
        found.append((moment, following))
        moment = following
    return found


def label(begin: datetime, interval: str) -> str:
    return f"{begin:%Y-%m-%dT%H:%M:%SZ}" if interval == "1h" else f"{begin:%Y-%m-%d}"


RANGES_ASKED = [
    ("1d", "2026-02-01", "2026-03-20"),
    ("1d", "2026-02-08", "2026-02-15"),
    ("1w", "2026-02-01", "2026-03-20"),
    ("1M", "2026-01-01", "2026-03-20"),
    ("1h", "2026-02-09", "2026-02-13"),
    ("1h", "2026-02-20", "2026-02-23"),
    ("1h", "2026-03-14", "2026-03-16"),
    # The range ends inside the last interval: in a covered range, in the gap, and after the newest block.
    ("1d", "2026-02-08", "2026-02-15T09:30:00"),
    ("1d", "2026-02-01", "2026-02-21T11:00:00"),
    ("1h", "2026-02-20", "2026-02-20T12:30:00"),
    ("1w", "2026-02-01", "2026-03-05"),
    ("1M", "2026-01-01", "2026-02-22T13:00:00"),
    ("1w", "2026-02-01", "2026-02-11"),
    ("1d", "2026-03-10", "2026-03-14T20:00:00"),
]


def bounds(interval: str, begin: str, end: str) -> list[tuple[datetime, datetime, datetime]]:
    """Return start, end and moment of the state of each interval: the last before its end, that of `to`, or now."""
    first, last = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (begin, end))
    return [
        (start, finish, min(finish - INSTANT, last - INSTANT, NEWEST))
        for start, finish in starts(interval, first, last)
    ]


def expect_bounds(row: dict[str, Any], start: datetime, finish: datetime, moment: datetime, interval: str) -> None:
    assert row["date"] == label(start, interval)
    assert [datetime.fromisoformat(row[name]) for name in ("from", "to", "at")] == [start, finish, moment]
    assert row["isComplete"] == (moment == finish - INSTANT and is_covered(finish))


@pytest.mark.parametrize(("interval", "begin", "end"), RANGES_ASKED)
def test_capitalization_point_by_point(client: Any, interval: str, begin: str, end: str) -> None:
    answer = client.get(CAPITALIZATION, params={"interval": interval, "from": begin, "to": end}).json()
    for row, (start, finish, moment) in zip(answer["history"], bounds(interval, begin, end), strict=True):
        expect_bounds(row, start, finish, moment, interval)
        if not is_covered(moment + INSTANT):
            assert {row[name] for name in ("supply", "price", "value")} == {None}
            assert {row[f"{name}Status"] for name in ("supply", "price", "value")} == {"NotCovered"}
            continue
        supply = at_block(SUPPLIES, moment)
        assert (row["supplyRaw"], row["supply"]) == (str(supply), str(supply))
        assert row["supplyStatus"] == supply_status(supply)
        assert (row["price"], row["priceStatus"]) == (price(moment), status(moment))
        assert (row["value"], row["valueStatus"]) == (
            value_of(str(supply), price(moment)),
            capitalization_status(supply, moment),
        )


@pytest.mark.parametrize(("interval", "begin", "end"), RANGES_ASKED)
def test_wallet_value_point_by_point(client: Any, interval: str, begin: str, end: str) -> None:
    answer = client.get(VALUES, params={"interval": interval, "from": begin, "to": end}).json()
    for row, (start, finish, moment) in zip(answer["points"], bounds(interval, begin, end), strict=True):
        expect_bounds(row, start, finish, moment, interval)
        expected = (None, "NotCovered", [])
        if is_covered(moment + INSTANT):
            expected = wallet_value(moment)
            assert row["valueComplete"] == (not expected[2])
        assert (row["value"], row["valueStatus"], row["unpriced"]) == expected


def test_points_include_every_case(client: Any) -> None:
    """The points above include known values, gaps, missing prices, zero and huge values."""
    query = "?from=2026-02-01&to=2026-03-20"
    history = client.get(f"{CAPITALIZATION}{query}").json()["history"]
    assert {row["valueStatus"] for row in history} == {"Priced", "Unconfirmed", "NotCovered", "StalePrice"}
    assert {row["supplyStatus"] for row in history} == {"Observed", "Unconfirmed", "ZeroSupply", "NotCovered"}
    assert max(len(row["value"] or "") for row in history) > 60
    points = client.get(f"{VALUES}{query}").json()["points"]
    assert {row["valueStatus"] for row in points} == {"Priced", "NotCovered", "StalePrice"}
    assert {tuple(row["unpriced"]) for row in points} == {(), ("ODD",), ("ETH",)}
    assert "0" in {row["value"] for row in points}
    # 10 February ends in the gap; on the 11th nothing was collected; the 12th ends in the second range.
    assert [row["date"] for row in points if row["valueStatus"] == "NotCovered"] == ["2026-02-10", "2026-02-11"]


def test_heads(client: Any) -> None:
    answer = client.get(CAPITALIZATION).json()
    current = answer["current"]
    assert (answer["pairId"], answer["pricedAs"], answer["currency"]) == (SMALL_PAIR_ID, "SMALL", "USD")
    assert (current["value"], current["valueStatus"]) == (value_of(str(10**60), price(NEWEST)), "Priced")
    assert (current["price"], current["supply"]) == (price(NEWEST), str(10**60))
    assert current["asOf"] == answer["asOf"]
    assert answer["asOf"]["blockNumber"] == 300_000
    wallet = client.get(VALUES).json()
    value, value_status, unpriced = wallet_value(NEWEST)
    assert (wallet["totalValue"], wallet["totalValueStatus"], wallet["unpriced"]) == (value, value_status, unpriced)
    assert (wallet["valueComplete"], wallet["holdingsComplete"], wallet["currency"]) == (False, False, "USD")


def test_the_default_is_the_last_thirty_days(client: Any) -> None:
    for url, name in ((CAPITALIZATION, "history"), (VALUES, "points")):
        answer = client.get(url).json()
        dates = [date.fromisoformat(row["date"]) for row in answer[name]]
        assert dates == [date(2026, 2, 13) + DAY * number for number in range(30)]
        assert answer["interval"] == "1d"
        assert [row["isComplete"] for row in answer[name]] == [True] * 29 + [False]


def test_gaps_are_listed(client: Any) -> None:
    for url in (CAPITALIZATION, VALUES):
        coverage = client.get(url, params={"from": "2026-02-05", "to": "2026-02-20"}).json()["coverage"]
        assert coverage["complete"] is False
        assert [gap["reason"] for gap in coverage["gaps"]] == ["TrackingDisabled"]


def test_tabular_answers_have_the_points(client: Any) -> None:
    for url, name in ((CAPITALIZATION, "history"), (VALUES, "points")):
        rows = client.get(url).json()[name]
        answer = client.get(url, headers={"Accept": "application/x-ndjson"})
        assert answer.headers["x-as-of"]
        assert [json.loads(line) for line in answer.text.splitlines()] == rows
        table = client.get(url, headers={"Accept": "text/csv"}).text.splitlines()
        columns = table[0].split(",")
        assert columns[:3] == ["from", "to", "at"]
        assert "date" not in columns
        assert [line.split(",")[:3] for line in table[1:]] == [[row[name] for name in columns[:3]] for row in rows]
        place = columns.index("value")
        assert [line.split(",")[place] for line in table[1:]] == [row["value"] or "" for row in rows]


def test_too_many_points_are_refused(client: Any) -> None:
    for url in (CAPITALIZATION, VALUES):
        problem(client.get(f"{url}?from=1990-01-01&interval=1h"), 422, "invalid-parameter")
        problem(client.get(f"{url}?interval=2h"), 422, "invalid-parameter")


def test_before_anything_is_collected(long_template: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    world = copy_world(long_template, tmp_path_factory.mktemp("empty"))
    try:
        publish(world.settings.serving_dir, 1, {})
        with world.client() as client:
            answer = client.get(CAPITALIZATION).json()
            assert (answer["history"], answer["current"]["value"], answer["asOf"]["blockNumber"]) == ([], None, None)
            assert answer["current"]["valueStatus"] == "NoPrice"
            wallet = client.get(VALUES).json()
            assert (wallet["points"], wallet["totalValue"], wallet["totalValueStatus"]) == ([], None, "NotCovered")
    finally:
        world.store.close()
