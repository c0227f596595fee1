"""Explanations: the parts of a quantity, the used price and its rule, and the skipped sources."""

from datetime import datetime
from typing import Any

import pytest

from api.engine.serving import Serving
from api.examples import EXAMPLE_LINKED_TOKEN_ID, EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.values.explaining import explain_prices
from api.values.schemas import PriceExplanation
from tests.api.marts import publish
from tests.api.test_errors import problem
from tests.api.valued import (
    AS_OF,
    INSTANT,
    SMALL_PAIR_ID,
    SMALL_PAIR_KEY,
    SMALL_PRICES,
    minute,
    price_at,
    value_of,
    valued_rows,
)
from tests.api.world import HOLDERS, World, time_of

TOKEN, WALLET = f"/v1/tokens/{EXAMPLE_TOKEN_ID}", f"/v1/wallets/{EXAMPLE_WALLET_ID}"


def stamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def explained(world: World, *moments: datetime) -> list[PriceExplanation]:
    serving = Serving(world.settings.serving_dir, 256, 900)
    try:
        with serving.snapshot() as snapshot:
            wanted = [(SMALL_PAIR_KEY, moment) for moment in moments]
            found = explain_prices(snapshot, world.tenant_id, wanted)
    finally:
        serving.close()
    return [found[one] for one in wanted]


def passed_over(explanation: PriceExplanation) -> list[tuple[Any, ...]]:
    return [
        (one.price_source, one.position, one.reason, one.price, one.effective_from) for one in explanation.passed_over
    ]


def test_explained_price_names_source_rule_and_age(valued: World) -> None:
    first, fallback = explained(valued, minute(10) + INSTANT, minute(13))
    assert (first.pair_id, first.priced_as, first.priced_in, first.price_type) == (
        SMALL_PAIR_ID,
        "SMALL",
        "USD",
        "Trade",
    )
    assert (first.price, first.price_source, first.position, first.is_fallback, first.derivation) == (
        "3.000000000000000001",
        "src_kraken",
        0,
        False,
        "Direct",
    )
    assert (first.at, first.effective_from, first.age_seconds) == (minute(10) + INSTANT, minute(5), "300.000001")
    assert first.max_age_seconds == 420
    assert passed_over(first) == []
    assert (fallback.price, fallback.price_source, fallback.position, fallback.is_fallback) == (
        "7.1",
        "src_coinbase",
        1,
        True,
    )
    assert fallback.age_seconds == "240"
    assert passed_over(fallback) == [("src_kraken", 0, "Stale", "3.000000000000000001", minute(5))]


def test_skipped_sources_are_listed_with_the_reason(valued: World) -> None:
    before, stopped, none_left, stale = explained(valued, minute(1), minute(45), minute(48), minute(30))
    assert (before.price, before.price_status) == (None, "NoPrice")
    assert passed_over(before) == [
        ("src_kraken", 0, "NoPrice", None, None),
        ("src_coinbase", 1, "NoPrice", None, None),
    ]
    # The source's newest price is quarantined, so its earlier fresh price does not count.
    for found in (stopped, none_left):
        assert (found.price, found.price_status, found.age_seconds) == (None, "Quarantined", None)
        assert passed_over(found) == [
            ("src_kraken", 0, "Quarantined", "400", minute(44)),
            ("src_coinbase", 1, "Stale", "7.1", minute(9)),
        ]
    assert stopped.passed_over[0].detail == "Jump"
    assert (stale.price_status, [one.reason for one in stale.passed_over]) == ("StalePrice", ["Stale", "Stale"])


def test_source_without_a_market_is_listed_as_such(world: World) -> None:
    rows = valued_rows(world)
    for row in rows["price_routes"]:
        if row["source_id"] == "src_coinbase":
            row |= {"status": "Ambiguous", "detail": "two assets have the symbol"}
    rows["source_prices"] = [row for row in rows["source_prices"] if row["source_id"] != "src_coinbase"]
    publish(world.settings.serving_dir, 1, rows)
    (found,) = explained(world, minute(1))
    assert [(one.reason, one.detail) for one in found.passed_over] == [
        ("NoPrice", None),
        ("Ambiguous", "two assets have the symbol"),
    ]


def test_activities(valued: World) -> None:
    with valued.client() as client:
        rows = client.get(f"{TOKEN}/activities?explain=true&sort=date").json()["data"]
        plain = client.get(f"{TOKEN}/activities?sort=date").json()["data"]
        wallet = client.get(f"{WALLET}/activities?explain=true&sort=date").json()["data"]
    assert [{name: row[name] for name in row if name != "explanation"} for row in rows] == plain
    transfer, adjustment = rows[0]["explanation"], rows[-1]["explanation"]
    assert transfer["quantity"] == {
        "quantityRaw": "30",
        "anchor": None,
        "movements": {"count": 1, "fromBlock": 120, "toBlock": 120, "latest": [rows[0]["id"]]},
        "adjustments": 0,
    }
    assert (transfer["price"]["price"], transfer["price"]["at"]) == (rows[0]["price"], rows[0]["date"])
    assert adjustment["quantity"]["adjustments"] == 1
    assert (adjustment["price"]["price"], adjustment["price"]["priceStatus"]) == (None, "StalePrice")
    for row in rows:
        resolved = price_at(SMALL_PRICES, datetime.fromisoformat(row["date"]))
        assert row["explanation"]["price"]["priceSource"] == (resolved.said.source if resolved.said else None)
    assert [row["explanation"]["price"] is None for row in wallet] == [
        *(False, False, True),
        *(False, False, False, True),
    ]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (
            "block:200",
            {
                "h1": ("70", (99, "100"), [120], (120, 120)),
                "h2": ("80", (99, "50"), [120], (120, 120)),
                "h3": ("10", (99, "0"), [150], (150, 150)),
            },
        ),
        (
            f"{time_of(305):%Y-%m-%dT%H:%M:%SZ}",
            {
                "h2": ("80", (250, "80"), [], (None, None)),
                "h3": ("20", (250, "20"), [], (None, None)),
                "h4": ("60", (250, "0"), [300], (300, 300)),
            },
        ),
        (
            None,
            {
                "h2": ("75", (250, "80"), [395, 310], (310, 395)),
                "h3": ("20", (250, "20"), [], (None, None)),
                "h4": ("60", (250, "0"), [300], (300, 300)),
            },
        ),
    ],
)
def test_cap_tables(valued: World, moment: str | None, expected: dict[str, Any]) -> None:
    names = {address: name for name, address in HOLDERS.items()}
    with valued.client() as client:
        query = "" if moment is None else f"&asOf={moment}"
        rows = client.get(f"{TOKEN}/cap-table?explain=true{query}").json()["data"]
        activities = client.get(f"{TOKEN}/activities").json()["data"]
    block_of = {row["id"]: row["blockNumber"] for row in activities}
    for row in rows:
        quantity = row["explanation"]["quantity"]
        anchor, movements = quantity["anchor"], quantity["movements"]
        latest = [block_of[activity_id] for activity_id in movements["latest"]]
        assert expected[names[row["wallet"]]] == (
            quantity["quantityRaw"],
            (anchor["blockNumber"], anchor["quantityRaw"]),
            latest,
            (movements["fromBlock"], movements["toBlock"]),
        )
        assert quantity["quantityRaw"] == row["quantityRaw"]
        assert movements["count"] == len(movements["latest"])
        assert quantity["adjustments"] == latest.count(395)
        price = row["explanation"]["price"]
        assert row["value"] == value_of(row["quantity"], price["price"])
        assert row["valueStatus"] == price["priceStatus"]
    assert {names[row["wallet"]] for row in rows} == set(expected)


def test_balances(valued: World) -> None:
    with valued.client() as client:
        rows = client.get(f"{WALLET}/balances?explain=true").json()["current"]
        then = client.get(f"{WALLET}/balances?explain=true&asOf=block:120").json()["current"]
        activities = client.get(f"{WALLET}/activities").json()["data"]
    block_of = {row["id"]: row["blockNumber"] for row in activities}
    (fee,) = (row["id"] for row in activities if row["type"] == "Fee")
    ether, unknown = (next(row for row in rows if row["token"]["symbol"] == symbol) for symbol in ("ETH", None))
    assert ether["explanation"]["quantity"] == {
        "quantityRaw": "5999999999999979000",
        "anchor": {"blockNumber": 250, "quantityRaw": "6000000000000000000"},
        "movements": {"count": 1, "fromBlock": 300, "toBlock": 300, "latest": [fee]},
        "adjustments": 0,
    }
    assert ether["explanation"]["price"]["at"] == stamp(AS_OF)
    assert (unknown["explanation"]["quantity"]["anchor"], unknown["explanation"]["price"]) == (None, None)
    assert [block_of[one] for one in unknown["explanation"]["quantity"]["movements"]["latest"]] == [396]
    old = next(row for row in then if row["token"]["symbol"] == "ETH")["explanation"]
    assert old["quantity"]["anchor"] == {"blockNumber": 99, "quantityRaw": "1000000000000000000"}
    assert [block_of[one] for one in old["quantity"]["movements"]["latest"]] == [120]
    assert old["price"]["at"] == stamp(time_of(120))


def test_market_capitalization(valued: World) -> None:
    with valued.client() as client:
        answer = client.get(f"{TOKEN}/market-capitalization?explain=true&interval=1h").json()
        (burn,) = client.get(f"{TOKEN}/activities?type=Burn").json()["data"]
    hour, current = answer["history"][0]["explanation"], answer["current"]["explanation"]
    # The hourly supply starts from the reading before the window, the current one from the newest block.
    assert hour["quantity"] == {
        "quantityRaw": "155",
        "anchor": {"blockNumber": 250, "quantityRaw": "160"},
        "movements": {"count": 1, "fromBlock": 310, "toBlock": 310, "latest": [burn["id"]]},
        "adjustments": 0,
    }
    assert current["quantity"] == {
        "quantityRaw": "155",
        "anchor": {"blockNumber": 400, "quantityRaw": "155"},
        "movements": {"count": 0, "fromBlock": None, "toBlock": None, "latest": []},
        "adjustments": 0,
    }
    assert hour["price"]["at"] == stamp(AS_OF - INSTANT)
    assert current["price"]["at"] == stamp(AS_OF)
    assert (hour["price"]["price"], hour["price"]["ageSeconds"]) == ("6.25", "29.999999")


def test_wallet_values(valued: World) -> None:
    with valued.client() as client:
        points = client.get(f"{WALLET}/value-history?explain=true&interval=1h").json()["points"]
    assert len(points) == 2
    for point, moment in zip(points, (AS_OF - INSTANT, AS_OF), strict=True):
        positions = {one["token"]["symbol"]: one for one in point["explanation"]["positions"]}
        assert list(positions) == [None, "ETH"]
        assert positions["ETH"]["value"] == point["value"]
        assert positions["ETH"]["explanation"]["price"]["at"] == stamp(moment)
        assert positions["ETH"]["explanation"]["quantity"]["anchor"]["blockNumber"] == 250
        assert (positions[None]["value"], positions[None]["valueStatus"]) == (None, "UnknownDecimals")


@pytest.mark.parametrize(
    "path",
    [
        f"{TOKEN}/activities",
        f"{TOKEN}/cap-table",
        f"{WALLET}/activities",
        f"{WALLET}/balances",
        f"/v1/tokens/{EXAMPLE_LINKED_TOKEN_ID}/market-capitalization",
        f"{WALLET}/value-history",
    ],
)
def test_explain_is_refused_for_files_and_many_rows(valued: World, path: str) -> None:
    with valued.client() as client:
        found = problem(client.get(f"{path}?explain=true", headers={"Accept": "text/csv"}), 422, "invalid-parameter")
        assert found["errors"][0]["code"] == "json-only"
        problem(client.get(f"{path}?explain=perhaps"), 400, "malformed-parameter")
        assert client.get(f"{path}?explain=true").status_code == 200
        if path.endswith(("activities", "cap-table")):
            assert client.get(f"{path}?explain=true&limit=100").status_code == 200
            many = problem(client.get(f"{path}?explain=true&limit=101"), 422, "invalid-parameter")
            assert (many["errors"][0]["parameter"], many["errors"][0]["code"]) == ("limit", "too-many-explained")
        if path.endswith(("capitalization", "history")):
            query = "explain=true&interval=1h&from=2026-01-01"
            many = problem(client.get(f"{path}?{query}"), 422, "invalid-parameter")
            assert (many["errors"][0]["parameter"], many["errors"][0]["code"]) == ("from", "too-many-explained")
