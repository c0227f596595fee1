"""Prices of pairs over HTTP: the latest price, steps, prices of one source, intervals, order, pages, tenants."""

from datetime import UTC, datetime, timedelta

import pytest

from api.engine.serving import Serving
from api.examples import EXAMPLE_LINKED_TOKEN_ID, EXAMPLE_PAIR_ID, EXAMPLE_SOURCE_ID, EXAMPLE_TOKEN_ID
from api.prices.reading import latest_prices
from tests.api.marts import publish
from tests.api.test_errors import problem
from tests.api.valued import (
    INSTANT,
    MAX_AGE,
    SMALL_PAIR_ID,
    SMALL_PAIR_KEY,
    SMALL_PRICES,
    START,
    minute,
    price_at,
    valued_rows,
)
from tests.api.world import World

PRICES = f"/v2/pairs/{SMALL_PAIR_ID}/prices/history"


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def test_steps_of_the_system_price_newest_first(valued: World) -> None:
    with valued.client() as client:
        answer = client.get(PRICES).json()
    rows = answer["data"]
    assert (answer["pairId"], answer["pricedAs"], answer["pricedIn"], answer["priceType"]) == (
        SMALL_PAIR_ID,
        "SMALL",
        "USD",
        "Trade",
    )
    assert [(row["price"], row["priceSource"], row["isFallback"], row["validFrom"]) for row in rows] == [
        ("6.25", "src_kraken", False, stamp(minute(59.5))),
        ("5.5", "src_kraken", False, stamp(minute(50))),
        ("4", "src_kraken", False, stamp(minute(40))),
        ("7.1", "src_coinbase", True, stamp(minute(12) + INSTANT)),
        ("3.000000000000000001", "src_kraken", False, stamp(minute(5))),
        ("2.5", "src_kraken", False, stamp(minute(2))),
    ]
    # A plain Python resolution gives the same price at every moment; step ends are exact to the microsecond.
    for row in rows:
        begin, end = (datetime.fromisoformat(row[name]) for name in ("validFrom", "validUntil"))
        for moment in (begin, begin + (end - begin) / 2, end - INSTANT):
            resolved = price_at(SMALL_PRICES, moment)
            assert (resolved.status, resolved.price) == ("Priced", row["price"])
            assert resolved.said is not None
            assert (stamp(resolved.said.at), resolved.said.source) == (row["effectiveFrom"], row["priceSource"])
        assert price_at(SMALL_PRICES, end).price != row["price"]
        assert (row["priceType"], row["derivation"], row["priceStatus"], row["windowStart"], row["isPartial"]) == (
            "Trade",
            "Direct",
            "Priced",
            None,
            False,
        )


def test_a_range_is_half_open(valued: World) -> None:
    with valued.client() as client:
        query = f"from={stamp(minute(5))}&to={stamp(minute(50))}"
        steps = client.get(f"{PRICES}?{query}").json()["data"]
        own = client.get(f"{PRICES}?{query}&priceSource=src_kraken").json()["data"]
    assert [row["price"] for row in steps] == ["4", "7.1", "3.000000000000000001"]
    assert [row["price"] for row in own] == ["400", "4", "3.000000000000000001"]


def test_prices_of_one_source_include_all_its_prices(valued: World) -> None:
    with valued.client() as client:
        rows = client.get(f"{PRICES}?priceSource=src_kraken").json()["data"]
        fallback = client.get(f"{PRICES}?priceSource=src_coinbase").json()["data"]
        problem(client.get(f"{PRICES}?priceSource=src_gemini"), 422, "invalid-parameter")
        problem(client.get(f"{PRICES}?priceSource=src_kraken&interval=1d"), 422, "invalid-parameter")
    said = sorted((one for one in SMALL_PRICES if one.source == "src_kraken"), key=lambda one: one.at, reverse=True)
    assert [(row["price"], row["effectiveFrom"], row["state"], row["validUntil"]) for row in rows] == [
        (one.price, stamp(one.at), one.state, stamp(one.fresh_until)) for one in said
    ]
    stopped = next(row for row in rows if row["state"] == "Quarantined")
    assert (stopped["reason"], stopped["priceStatus"], stopped["priceId"]) == ("Jump", "Quarantined", "price_SMALL_4")
    assert [(row["price"], row["isFallback"]) for row in fallback] == [("7.1", True)]


def test_prices_by_intervals(valued: World) -> None:
    with valued.client() as client:
        answer = client.get(f"{PRICES}?interval=1h&from=2026-01-31T22:00:00Z&to=2026-02-01T03:00:00Z").json()
        today = client.get(f"{PRICES}?interval=1d").json()["data"]
    rows = {row["date"]: row for row in answer["data"]}
    assert list(rows) == sorted(rows, reverse=True)
    assert len(rows) == 5
    for date, row in rows.items():
        resolved = price_at(SMALL_PRICES, datetime.fromisoformat(date) + timedelta(hours=1) - INSTANT)
        assert (row["price"], row["priceStatus"], row["isComplete"]) == (resolved.price, resolved.status, True)
    assert rows["2026-02-01T00:00:00Z"]["price"] == "6.25"
    assert rows["2026-01-31T23:00:00Z"]["priceStatus"] == "NoPrice"
    assert rows["2026-02-01T01:00:00Z"]["priceStatus"] == "StalePrice"
    assert [(row["from"], row["to"], row["at"]) for row in answer["data"][:1]] == [
        ("2026-02-01T02:00:00Z", "2026-02-01T03:00:00Z", "2026-02-01T02:59:59.999999Z")
    ]
    assert len(today) == 30
    assert [row["isComplete"] for row in today] == [False] + [True] * 29
    assert {row["priceStatus"] for row in today} == {"StalePrice"}


def test_last_interval_is_cut_at_the_end_of_the_range(valued: World) -> None:
    """It has the price of the last moment before `to` and is not complete."""
    with valued.client() as client:
        answer = client.get(f"{PRICES}?interval=1d&from=2026-02-01&to={stamp(minute(5))}").json()["data"]
        steps = client.get(PRICES).json()["data"]
    moment = minute(5) - INSTANT
    resolved = price_at(SMALL_PRICES, moment)
    assert price_at(SMALL_PRICES, minute(5)) != resolved != price_at(SMALL_PRICES, minute(1440))
    assert [(row["price"], row["isComplete"], row["to"]) for row in answer] == [
        (resolved.price, False, "2026-02-02T00:00:00Z")
    ]
    assert datetime.fromisoformat(answer[0]["at"]) == moment
    assert {(row["from"], row["to"], row["at"]) for row in steps} == {(None, None, None)}


def test_daily_close_takes_effect_after_its_day(world: World) -> None:
    """The last moment of the day still has the previous price."""
    rows = valued_rows(world)
    close = datetime(2026, 2, 2, tzinfo=UTC).replace(tzinfo=None)
    step = next(row for row in rows["system_prices"] if row["pair_key"] == 1 and row["price_status"] == "Priced")
    rows["system_prices"] = [
        step | {"valid_until": close},
        step | {"valid_from": close, "effective_from": close, "price": "9000", "price_text": "9000"},
    ]
    publish(world.settings.serving_dir, 1, rows)
    with world.client() as client:
        query = "interval=1d&from=2026-02-01&to=2026-02-04"
        answer = client.get(f"/v2/pairs/{EXAMPLE_PAIR_ID}/prices/history?{query}").json()
    assert [(row["date"], row["price"]) for row in answer["data"]] == [
        ("2026-02-03", "9000"),
        ("2026-02-02", "9000"),
        ("2026-02-01", "101.5"),
    ]


def test_future_prices_are_not_returned(world: World) -> None:
    """A step may begin in the future if the previous price then becomes stale or it was entered so."""
    rows = valued_rows(world)
    future = "2999-01-01 00:00:00"
    step = next(row for row in rows["system_prices"] if row["pair_key"] == 1 and row["price_status"] == "Priced")
    rows["system_prices"].append(step | {"valid_from": future, "effective_from": future, "price_text": "1"})
    rows["source_prices"].append(rows["source_prices"][0] | {"effective_from": future, "price_text": "1"})
    publish(world.settings.serving_dir, 1, rows)
    with world.client() as client:
        for query in ("", f"?priceSource={EXAMPLE_SOURCE_ID}", "?from=2990-01-01&to=3000-01-01"):
            answer = client.get(f"/v2/pairs/{EXAMPLE_PAIR_ID}/prices/history{query}").json()
            assert "1" not in {row["price"] for row in answer["data"]}


def test_a_token_has_the_prices_of_its_pair(valued: World) -> None:
    with valued.client() as client:
        for query in ("", "?interval=1d", "?priceSource=src_kraken&limit=2"):
            of_pair = client.get(f"{PRICES}{query}").json()["data"]
            of_token = client.get(f"/v1/tokens/{EXAMPLE_TOKEN_ID}/price-history{query}").json()
            assert (of_token["data"], of_token["pairId"]) == (of_pair, SMALL_PAIR_ID)


def test_a_token_without_a_pair_has_no_prices(world: World) -> None:
    with world.client() as client:
        problem(client.get(f"/v1/tokens/{EXAMPLE_TOKEN_ID}/price-history"), 409, "no-linked-pair")
        assert client.get(f"/v1/tokens/{EXAMPLE_LINKED_TOKEN_ID}/price-history").status_code == 200


@pytest.mark.parametrize(
    ("moment", "price", "is_fallback", "is_stale"),
    [
        (minute(1), None, None, None),
        (minute(2), "2.5", False, False),
        (minute(12), "3.000000000000000001", False, False),
        (minute(12) + INSTANT, "7.1", True, False),
        (minute(16) + INSTANT, "7.1", True, True),
        (minute(45), "4", False, True),
        (minute(48), "4", False, True),
        (minute(59.5) + MAX_AGE, "6.25", False, False),
        (minute(59.5) + MAX_AGE + INSTANT, "6.25", False, True),
    ],
)
def test_the_latest_price(
    valued: World, moment: datetime, price: str | None, is_fallback: bool | None, is_stale: bool | None
) -> None:
    serving = Serving(valued.settings.serving_dir, 256, 900)
    try:
        with serving.snapshot() as snapshot:
            found = latest_prices(snapshot, valued.tenant_id, [SMALL_PAIR_KEY, 999], moment)
            foreign = latest_prices(snapshot, valued.foreign_tenant_id, [SMALL_PAIR_KEY], moment)
    finally:
        serving.close()
    assert foreign == {}
    if price is None:
        assert found == {}
        return
    latest = found[SMALL_PAIR_KEY]
    assert (latest.price, latest.is_fallback, latest.is_stale) == (price, is_fallback, is_stale)
    assert latest.effective_from <= moment
    assert latest.effective_from >= START


def test_latest_price_becomes_stale_without_a_new_cycle(world: World) -> None:
    """If the newest step has no end, the pair's `maxAge` applies, or the price's window if that is longer."""
    rows = valued_rows(world)
    step = next(row for row in rows["system_prices"] if row["pair_key"] == SMALL_PAIR_KEY)
    rows["system_prices"] = [step | {"valid_until": None}]
    publish(world.settings.serving_dir, 1, rows)
    rows["system_prices"] = [step | {"valid_until": None, "window_start": step["effective_from"] - timedelta(hours=1)}]
    publish(world.settings.serving_dir, 2, rows)
    serving = Serving(world.settings.serving_dir, 256, 900)

    def is_stale(version: int, after: timedelta) -> bool:
        with serving.snapshot(version) as snapshot:
            found = latest_prices(snapshot, world.tenant_id, [SMALL_PAIR_KEY], minute(2) + after)
            return found[SMALL_PAIR_KEY].is_stale

    try:
        assert [is_stale(1, MAX_AGE), is_stale(1, MAX_AGE + INSTANT)] == [False, True]
        hour = timedelta(hours=1)
        assert [is_stale(2, hour), is_stale(2, hour + INSTANT)] == [False, True]
    finally:
        serving.close()


@pytest.mark.ci
@pytest.mark.parametrize(
    "url",
    [
        "/v2/pairs",
        PRICES,
        f"/v1/tokens/{EXAMPLE_TOKEN_ID}/price-history",
        f"{PRICES}?priceSource=src_kraken",
        f"{PRICES}?interval=1h&from=2026-01-31T20:00:00Z",
        f"{PRICES}?interval=1M",
    ],
)
def test_time_changes_the_etag_only_with_the_response(valued: World, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that begins or becomes stale, or an hour or month that ends, gives 200; otherwise 304."""
    moments = [minute(5), minute(5.5), minute(12), minute(12) + INSTANT, minute(59), minute(60), minute(66)]
    moments += [minute(67), minute(120), minute(121), START + timedelta(days=40), START + timedelta(days=70)]
    form, statuses = "text/csv", []
    with valued.client() as client:
        before, etag = None, ""
        for moment in moments:
            monkeypatch.setattr("api.http.auth.utc_now", lambda moment=moment: moment)
            fresh = client.get(url, headers={"Accept": form})
            known = client.get(url, headers={"Accept": form, "If-None-Match": etag})
            same = client.get(url, headers={"Accept": form, "If-None-Match": fresh.headers["etag"]})
            assert (fresh.status_code, same.status_code) == (200, 304)
            assert known.status_code == (304 if fresh.content == before else 200)
            before, etag = fresh.content, fresh.headers["etag"]
            statuses.append(known.status_code)
    assert set(statuses[1:]) == {200, 304}
