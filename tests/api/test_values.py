"""Values of activities, cap tables, balances and lists: exact at the price of their moment, or null with a reason."""

import random
from datetime import datetime
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from api.engine.query_texts import load_queries
from api.examples import EXAMPLE_LINKED_TOKEN_ID, EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.values.reading import total, whole_tokens
from control.models import PricePair, Subject
from figures.numbers import percentage
from tests.api.marts import functions, publish
from tests.api.pricing import LINKED_PAIR_KEY
from tests.api.test_errors import problem
from tests.api.test_report_data import embed
from tests.api.valued import (
    AS_OF,
    ETHER_PAIR_KEY,
    ETHER_PRICES,
    SMALL_PAIR_ID,
    SMALL_PRICES,
    Resolved,
    price_at,
    sum_of,
    value_of,
    valued_rows,
)
from tests.api.world import STRANGE, World, text_of, time_of

REPORT = "/embed/data/wallet-activity"
TOKEN, WALLET = f"/v1/tokens/{EXAMPLE_TOKEN_ID}", f"/v1/wallets/{EXAMPLE_WALLET_ID}"


def shown(quantity: str, resolved: Resolved) -> tuple[str | None, str, str | None, str]:
    """Return value, value status, price and price status."""
    return (value_of(quantity, resolved.price), resolved.status, resolved.price, resolved.status)


def found(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["value"], row["valueStatus"], row["price"], row["priceStatus"])


def test_activities_are_valued_at_their_own_time(valued: World) -> None:
    with valued.client() as client:
        answer = client.get(f"{TOKEN}/activities?sort=date").json()
        rows = answer["data"]
    assert answer["currency"] == "USD"
    moments = [time_of(block) for block in (120, 150, 300, 310, 395)]
    amounts = ["30", "10", "60", "5", "7"]
    expected = [shown(amount, price_at(SMALL_PRICES, moment)) for amount, moment in zip(amounts, moments, strict=True)]
    assert [found(row) for row in rows] == expected
    # The comparison above covers every kind of price.
    assert [row["value"] for row in rows] == ["75", "30.00000000000000001", "240", "20", None]
    assert rows[-1]["valueStatus"] == "StalePrice"


def test_wallet_activities_are_valued_by_the_pair_of_their_asset(valued: World) -> None:
    with valued.client() as client:
        rows = client.get(f"{WALLET}/activities?sort=date").json()["data"]
    amounts = [5 * 10**18, 30, 5, 21_000, 60, 2**256 - 1, 9]
    assert [int(row["amountRaw"]) for row in rows] == amounts
    assert found(rows[0]) == shown("5", price_at(ETHER_PRICES, time_of(120)))
    assert found(rows[1]) == shown("30", price_at(SMALL_PRICES, time_of(120)))
    assert found(rows[3]) == (None, "StalePrice", None, "StalePrice")
    assert found(rows[4]) == shown("60", price_at(SMALL_PRICES, time_of(300)))
    assert rows[5]["valueStatus"] == "StalePrice"
    for unknown in (rows[2], rows[6]):
        assert found(unknown) == (None, "UnknownDecimals", None, "NoPair")


@pytest.mark.parametrize(
    ("query", "moment"),
    [
        ("", AS_OF),
        ("?asOf=block:200", time_of(200)),
        (f"?asOf={time_of(120):%Y-%m-%dT%H:%M:%SZ}", time_of(120)),
        (f"?asOf={time_of(305):%Y-%m-%dT%H:%M:%SZ}&sort=wallet", time_of(305)),
    ],
)
def test_cap_tables_are_valued_at_their_moment(valued: World, query: str, moment: datetime) -> None:
    """Block 305 is not stored; the value still uses the price of the instant itself."""
    with valued.client() as client:
        table = client.get(f"{TOKEN}/cap-table{query}").json()
    resolved = price_at(SMALL_PRICES, moment)
    assert table["data"]
    for row in table["data"]:
        assert (row["value"], row["valueStatus"]) == shown(row["quantity"], resolved)[:2]


def test_balances_are_valued_at_their_moment(valued: World) -> None:
    with valued.client() as client:
        now = client.get(f"{WALLET}/balances").json()["current"]
        then = client.get(f"{WALLET}/balances?asOf=block:120").json()["current"]
        hours = client.get(f"{WALLET}/balances?interval=1h").json()["history"]
    assert {row["token"]["symbol"]: found(row) for row in now} == {
        "ETH": shown("5.999999999999979", price_at(ETHER_PRICES, AS_OF)),
        None: (None, "UnknownDecimals", None, "NoPair"),
    }
    assert {row["token"]["symbol"]: found(row) for row in then} == {
        "ETH": shown("6", price_at(ETHER_PRICES, time_of(120))),
        "SMALL": shown("70", price_at(SMALL_PRICES, time_of(120))),
        None: (None, "UnknownDecimals", None, "NoPair"),
    }
    points = next(one["points"] for one in hours if one["token"]["symbol"] == "ETH")
    # The hour from 00:00 is over at the newest block, 01:00; its last moment is just before that.
    assert [(point["value"], point["valueStatus"]) for point in points] == [
        shown("5.999999999999979", price_at(ETHER_PRICES, AS_OF))[:2],
        shown("5.999999999999979", price_at(ETHER_PRICES, AS_OF))[:2],
    ]


def test_lists_and_details_of_tokens(valued: World) -> None:
    expected = {
        "pricedAs": "SMALL",
        "pricedIn": "USD",
        "pairId": SMALL_PAIR_ID,
        "price": "6.25",
        "priceStatus": "Priced",
        "marketCapitalization": "968.75",
        "marketCapitalizationStatus": "Priced",
        "change24h": None,
        "change24hStatus": "NoPrice",
    }
    with valued.client() as client:
        listed = {row["id"]: row for row in client.get("/v1/tokens").json()["data"]}
        detail = client.get(TOKEN).json()
    for row in (listed[EXAMPLE_TOKEN_ID], detail):
        assert {name: row[name] for name in expected} == expected
    others = [row for row in listed.values() if row["id"] not in (EXAMPLE_TOKEN_ID, EXAMPLE_LINKED_TOKEN_ID)]
    assert {(row["pairId"], row["price"], row["priceStatus"]) for row in others} == {(None, None, "NoPair")}


def test_lists_and_details_of_wallets(valued: World) -> None:
    with valued.client() as client:
        listed = client.get("/v1/wallets").json()["data"][0]
        detail = client.get(WALLET).json()
    for row in (listed, detail):
        assert row["totalValue"] == value_of("5.999999999999979", ETHER_PRICES[-1].price)
        assert (row["totalValueStatus"], row["valueComplete"]) == ("Priced", False)
        assert row["unpriced"] == ["0xDDdDddDdDdddDDddDDddDDDDdDdDDdDDdDDDDDDd"]


@pytest.mark.parametrize(("pair_key", "status"), [(None, "NoPair"), (LINKED_PAIR_KEY, "NoPrice")])
def test_changed_link_gives_no_value_by_the_old_pair(valued: World, pair_key: int | None, status: str) -> None:
    """Until the next version, an unlinked or relinked token has no value, and never that of another pair."""
    with valued.store.write() as session:
        session.get_one(Subject, valued.subject_keys[EXAMPLE_TOKEN_ID]).pair_key = pair_key
    with valued.client() as client:
        activities = client.get(f"{TOKEN}/activities").json()["data"]
        holders = client.get(f"{TOKEN}/cap-table").json()["data"]
        past = client.get(f"{TOKEN}/cap-table?asOf=block:305").json()["data"]
        token = client.get(TOKEN).json()
        listed = next(row for row in client.get("/v1/tokens").json()["data"] if row["id"] == EXAMPLE_TOKEN_ID)
        capitalization = client.get(f"{TOKEN}/market-capitalization?interval=1h")
    assert {found(row) for row in activities} == {(None, status, None, status)}
    assert {(row["value"], row["valueStatus"]) for row in holders + past} == {(None, status)}
    for row in (token, listed):
        assert (row["price"], row["priceStatus"]) == (None, status)
        assert (row["marketCapitalization"], row["marketCapitalizationStatus"]) == (None, status)
    if pair_key is None:
        problem(capitalization, 409, "no-linked-pair")
    else:
        answer = capitalization.json()
        assert (answer["priceStatus"] if "priceStatus" in answer else answer["current"]["priceStatus"]) == status
        assert {(row["value"], row["price"], row["supply"]) for row in answer["history"]} == {(None, None, "155")}


@pytest.mark.parametrize(("pair_key", "status"), [(None, "NoPair"), (LINKED_PAIR_KEY, "NoPrice")])
def test_changed_link_gives_a_wallet_no_value_by_the_old_pair(valued: World, pair_key: int | None, status: str) -> None:
    """Until the next version, positions and activities lack the token's value; those of other assets keep theirs."""
    with valued.client() as client:
        before = client.get(f"{WALLET}/activities").json()["data"]
        headers = embed(client, "/v1/reports/wallet-activity", walletId=EXAMPLE_WALLET_ID)
        before_report = client.get(f"{REPORT}/rows?sort=-value", headers=headers).json()["data"]
    with valued.store.write() as session:
        session.get_one(Subject, valued.subject_keys[EXAMPLE_TOKEN_ID]).pair_key = pair_key
    with valued.client() as client:
        activities = client.get(f"{WALLET}/activities").json()["data"]
        then = client.get(f"{WALLET}/balances?asOf=block:120").json()["current"]
        rows = client.get(f"{REPORT}/rows?sort=-value", headers=headers).json()["data"]
        summary = client.get(f"{REPORT}/summary", headers=headers).json()
    small = [row for row in activities if row["token"]["symbol"] == "SMALL"]
    assert small
    assert {found(row) for row in small} == {(None, status, None, status)}
    assert [row for row in activities if row not in small] == [
        row for row in before if row["token"]["symbol"] != "SMALL"
    ]
    assert {found(row) for row in then if row["token"]["symbol"] == "SMALL"} == {(None, status, None, status)}
    assert next(row for row in then if row["token"]["symbol"] == "ETH")["value"] is not None
    assert any(row["value"] and row["token"]["symbol"] == "SMALL" for row in before_report)
    assert {row["id"]: found(row) for row in rows} == {row["id"]: found(row) for row in activities}
    # Rows without a value come last.
    assert [row["value"] is None for row in rows] == sorted(row["value"] is None for row in rows)
    moved = [row for row in activities if row["direction"] and row["status"] != "Failed"]
    received, sent = (
        sum_of(row["value"] for row in moved if row["value"] and row["direction"] == direction)
        for direction in ("In", "Out")
    )
    assert (summary["flows"]["in"], summary["flows"]["out"], summary["flows"]["isComplete"]) == (received, sent, False)


def test_wallet_has_no_total_after_removal_of_an_assets_pair(valued: World) -> None:
    """After removal of the native asset's pair, a shared token definition has no link either."""
    with valued.store.write() as session:
        session.get_one(PricePair, ETHER_PAIR_KEY).removed_at = AS_OF
    with valued.client() as client:
        embedded = embed(client, "/v1/reports/wallet-activity", walletId=EXAMPLE_WALLET_ID)
        summary = client.get(f"{REPORT}/summary", headers=embedded).json()
        listed = client.get("/v1/wallets").json()["data"][0]
        history = client.get(f"{WALLET}/value-history").json()
        index = client.get("/embed/data/index", headers=embed(client, "/v1/reports")).json()
        shown_wallets = [wallet for wallet in index["wallets"] if wallet["id"] == EXAMPLE_WALLET_ID]
        details = [client.get(WALLET).json(), listed, history, summary, *shown_wallets]
        positions = client.get(f"{WALLET}/balances").json()["current"]
    assert len(shown_wallets) == 1
    for row in details:
        assert (row["totalValue"], row["totalValueStatus"], row["valueComplete"]) == (None, "UnknownDecimals", False)
        assert row["change24h"] is None
    for row in (listed, history, summary):
        assert [name.lower() for name in row["unpriced"]] == [STRANGE, "eth"]
    assert [point["value"] for point in history["points"] + summary["valueHistory"] if point["value"] is not None] == []
    assert {row["valueStatus"] for row in positions} == {"NoPair", "UnknownDecimals"}


def test_values_use_only_pairs_of_the_tenant(valued: World) -> None:
    """Prices of another tenant's pair give no value, even if the row keys match."""
    rows = valued_rows(valued)
    for name in ("system_prices", "token_prices", "token_activity_values", "wallet_totals", "token_pairs"):
        rows[name] = [row | {"tenant_id": valued.foreign_tenant_id} for row in rows[name]]
    publish(valued.settings.serving_dir, 1, rows)
    with valued.client() as client:
        assert {row["value"] for row in client.get(f"{TOKEN}/activities").json()["data"]} == {None}
        assert {row["value"] for row in client.get(f"{TOKEN}/cap-table").json()["data"]} == {None}
        assert {row["value"] for row in client.get(f"{WALLET}/balances").json()["current"]} == {None}
        assert client.get(TOKEN).json()["price"] is None
        assert client.get(WALLET).json()["totalValue"] is None


def test_tabular_answers_have_the_values(valued: World) -> None:
    with valued.client() as client:
        for path in (f"{TOKEN}/activities", f"{TOKEN}/cap-table", f"{WALLET}/activities"):
            rows = client.get(path).json()["data"]
            assert any(row["value"] for row in rows), path
            table = client.get(path, headers={"Accept": "text/csv"}).text.splitlines()
            assert "explanation" not in table[0]
            place = table[0].split(",").index("value")
            assert [line.split(",")[place] for line in table[1:]] == [row["value"] or "" for row in rows]


def test_products_are_exact() -> None:
    """The marts' function, the API's query and fractions agree: halves, any size, many decimals."""
    source = random.Random(7)
    cases = [
        (raw, decimals, price)
        for raw in (0, 1, 5, 15, 25, 10**12, 10**18 + 5, 2**255, 2**256 - 1)
        for decimals in (0, 1, 6, 18, 77, 255)
        for price in (1, 5, 25, 10**18, 10**24, 10**38 - 1)
    ]
    cases += [
        (
            source.getrandbits(source.randint(1, 256)),
            source.randint(0, 40),
            source.randint(1, 10 ** source.randint(1, 38)),
        )
        for _ in range(50)
    ]
    with duckdb.connect() as connection:
        connection.execute(functions())
        connection.execute("create table cases (raw bignum, decimals integer, price decimal(38, 18))")
        given = [(str(raw), str(decimals), text_of(price, 18)) for raw, decimals, price in cases]
        connection.executemany("insert into cases values (?::bignum, ?::integer, ?::decimal(38, 18))", given)
        found = connection.execute("select marts.to_value(raw, decimals, price) from cases order by rowid").fetchall()
        factors = {
            "quantities": [text_of(raw, decimals) for raw, decimals, _ in cases],
            "prices": [text_of(price, 18) for _, _, price in cases],
        }
        asked = connection.execute(load_queries()["products"], factors).fetchall()
    expected = [(text_of(round(Fraction(raw * price, 10**decimals)), 18),) for raw, decimals, price in cases]
    assert found == expected
    assert asked == expected


def test_shares_and_whole_tokens_equal_those_of_the_marts() -> None:
    """The marts' functions, the API's and fractions agree: halves, zero, below zero, sizes beyond machine numbers."""
    source = random.Random(8)
    numbers = (0, 1, 2, 3, 5, 7, -1, -25, 10**12, 10**24, 10**38, 2**255, 2**256 - 1)
    cases = [(part, whole, decimals) for part in numbers for whole in numbers if whole >= 0 for decimals in (0, 6, 255)]
    cases += [
        (source.getrandbits(source.randint(1, 256)), source.getrandbits(source.randint(1, 256)), source.randint(0, 40))
        for _ in range(200)
    ]
    cases += [(part * 125, 10**15, 18) for part in range(9)]  # Halves of the last decimal.
    with duckdb.connect() as connection:
        connection.execute(functions())
        connection.execute("create table cases (part bignum, whole bignum, decimals integer)")
        given = [tuple(map(str, case)) for case in cases]
        connection.executemany("insert into cases values (?::bignum, ?::bignum, ?::integer)", given)
        found = connection.execute(
            "select marts.percentage(part, whole), marts.to_amount(part, decimals) from cases order by rowid"
        ).fetchall()
    for (part, whole, decimals), (share, amount) in zip(cases, found, strict=True):
        expected = text_of(round(Fraction(100 * part * 10**12, whole)), 12) if whole else None
        assert (percentage(part, whole), share) == (expected, expected)
        assert (whole_tokens(str(part), decimals), amount) == (text_of(part, decimals), text_of(part, decimals))
    assert percentage(None, 1) is percentage(1, None) is whole_tokens(None, 1) is whole_tokens("1", None) is None


def test_sums_are_exact() -> None:
    assert total([]) == "0"
    assert total(["0.1"] * 10) == "1"
    assert total([str(2**256 - 1), "0.000000000000000001"]) == f"{2**256 - 1}.000000000000000001"
