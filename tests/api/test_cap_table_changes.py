"""New, gone and changed holders between two moments: kinds, differences, order, pages, moments, coverage."""

import csv
from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_TOKEN_ID
from tests.api.marts import publish
from tests.api.test_errors import problem
from tests.api.world import (
    FRESH_TOKEN_ID,
    HOLDERS,
    WIDE_TOKEN_ID,
    World,
    marts_rows,
    percentage_of,
    supply_status_at,
    text_of,
    time_of,
)

CAP_TABLE = f"/v1/tokens/{EXAMPLE_TOKEN_ID}/cap-table"
CHANGES = f"{CAP_TABLE}/changes"
NAMES = {address: name for name, address in HOLDERS.items()}


def stamp(block: int) -> str:
    return f"{time_of(block):%Y-%m-%dT%H:%M:%SZ}"


def differences(answer: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(NAMES[row["wallet"]], row["change"], row["differenceRaw"]) for row in answer["data"]]


@pytest.mark.parametrize(
    ("start", "end", "expected", "holders", "supplies"),
    [
        # Inside one range.
        ("block:260", "block:305", [("h1", "Gone", "-60"), ("h4", "New", "60")], (3, 3), (160, 160)),
        ("block:305", "block:400", [("h2", "Changed", "-5")], (3, 3), (160, 155)),
        ("block:100", "block:149", [("h1", "Changed", "-30"), ("h2", "Changed", "30")], (2, 2), (150, 150)),
        ("block:100", "block:150", [*[("h1", "Changed", "-30"), ("h2", "Changed", "30")], ("h3", "New", "10")], (2, 3),
         (150, 160)),
        ("block:300", "block:300", [], (3, 3), (160, 160)),
        # From one range to another: the balance of h4 in the first range is unknown.
        ("block:200", "block:260", [("h1", "Changed", "-10"), ("h3", "Changed", "10")], (3, 3), (160, 160)),
        (
            "block:200",
            "block:400",
            [("h1", "Gone", "-70"), ("h4", "New", None), ("h3", "Changed", "10"), ("h2", "Changed", "-5")],
            (3, 3),
            (160, 155),
        ),
    ],
)  # fmt: skip
def test_changes_between_two_blocks(
    client: TestClient[Any],
    start: str,
    end: str,
    expected: list[tuple[str, str, str | None]],
    holders: tuple[int, int],
    supplies: tuple[int, int],
) -> None:
    answer = client.get(CHANGES, params={"from": start, "to": end}).json()
    assert differences(answer) == expected
    kinds = [change for _, change, _ in expected]
    assert answer["totals"] == {
        "holdersBefore": holders[0],
        "holdersAfter": holders[1],
        "new": kinds.count("New"),
        "gone": kinds.count("Gone"),
        "changed": kinds.count("Changed"),
        "supplyBefore": str(supplies[0]),
        "supplyBeforeRaw": str(supplies[0]),
        "supplyBeforeStatus": supply_status_at(int(start[6:])),
        "supplyAfter": str(supplies[1]),
        "supplyAfterRaw": str(supplies[1]),
        "supplyAfterStatus": supply_status_at(int(end[6:])),
    }
    assert [answer["from"]["blockNumber"], answer["to"]["blockNumber"]] == [int(text[6:]) for text in (start, end)]
    tables = {
        text: {row["wallet"]: row for row in client.get(CAP_TABLE, params={"asOf": text}).json()["data"]}
        for text in (start, end)
    }
    for row in answer["data"]:
        for text, side in ((start, "Before"), (end, "After")):
            shown = tables[text].get(row["wallet"])
            if shown is not None:
                assert row[f"quantity{side}Raw"] == shown["quantityRaw"]
                assert row[f"percentage{side}"] == shown["percentage"]
                assert row[f"percentage{side}Status"] == shown["percentageStatus"]
            else:
                assert row[f"quantity{side}"] in ("0", None)


def test_a_row(client: TestClient[Any]) -> None:
    known, unknown, *_ = client.get(f"{CHANGES}?from=block:200&to=block:400").json()["data"]
    assert known == {
        "wallet": HOLDERS["h1"],
        "change": "Gone",
        "quantityBefore": "70",
        "quantityBeforeRaw": "70",
        "quantityAfter": "0",
        "quantityAfterRaw": "0",
        "difference": "-70",
        "differenceRaw": "-70",
        "quantityStatus": "Known",
        "percentageBefore": percentage_of(70, 160),
        "percentageBeforeStatus": "Unconfirmed",
        "percentageAfter": "0",
        "percentageAfterStatus": "Observed",
        "name": None,
    }
    assert unknown == known | {
        "wallet": HOLDERS["h4"],
        "change": "New",
        "quantityBefore": None,
        "quantityBeforeRaw": None,
        "quantityAfter": "60",
        "quantityAfterRaw": "60",
        "difference": None,
        "differenceRaw": None,
        "quantityStatus": "UnknownBefore",
        "percentageBefore": None,
        "percentageBeforeStatus": "Unknown",
        "percentageAfter": percentage_of(60, 155),
    }


def test_balance_is_unknown_after_a_range_without_the_holder(world: World) -> None:
    """A balance is not carried from one range into the next."""
    rows = marts_rows(world)
    rows["balance_changes"] = [
        row
        for row in rows["balance_changes"]
        if (row["range_from_block"], row["holder_address"]) != (251, HOLDERS["h2"])
    ]
    publish(world.settings.serving_dir, 1, rows)
    with world.client() as client:
        answer = client.get(f"{CHANGES}?from=block:200&to=block:260&change=Gone").json()
    assert differences(answer) == [("h2", "Gone", None)]
    gone = answer["data"][0]
    assert (gone["quantityBefore"], gone["quantityAfter"], gone["quantityStatus"]) == ("80", None, "UnknownAfter")
    assert (gone["percentageAfter"], gone["percentageAfterStatus"]) == (None, "Unknown")


@pytest.mark.ci
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sort=-difference", ["h1", "h4", "h3", "h2"]),
        ("sort=difference", ["h2", "h3", "h4", "h1"]),
        ("sort=wallet", ["h1", "h2", "h3", "h4"]),
        ("sort=-wallet", ["h4", "h3", "h2", "h1"]),
        ("change=New", ["h4"]),
        ("change=Gone", ["h1"]),
        ("change=Changed", ["h3", "h2"]),
        ("change=Changed&sort=wallet", ["h2", "h3"]),
    ],
)
def test_order_filter_and_pages(client: TestClient[Any], query: str, expected: list[str]) -> None:
    url = f"{CHANGES}?from=block:200&{query}"
    whole = client.get(url).json()
    assert [NAMES[row["wallet"]] for row in whole["data"]] == expected
    assert (whole["totals"]["new"], whole["totals"]["gone"], whole["totals"]["changed"]) == (1, 1, 2)
    for limit in (1, 3, len(expected)):
        paged: list[Any] = []
        following = f"{url}&limit={limit}"
        while following:
            answer = client.get(following)
            paged += answer.json()["data"]
            assert answer.json()["totals"] == whole["totals"]
            following = answer.links["next"]["url"] if "next" in answer.links else ""
        assert paged == whole["data"]


def test_amounts_are_exact(world: World) -> None:
    """The largest amounts with 77 decimals, which differ only in the last digit, sort correctly."""
    largest = 2**256 - 1
    known = [
        ("h1", 99, largest), ("h1", 120, 0),
        ("h2", 99, 1), ("h2", 120, largest - 1),
        ("h3", 99, 0), ("h3", 120, largest),
        ("h4", 99, 0), ("h4", 120, largest - 1),
    ]  # fmt: skip
    rows = marts_rows(world)
    sample = rows["balance_changes"][0] | {"subject_key": world.subject_keys[WIDE_TOKEN_ID]}
    rows["balance_changes"] = [
        sample | {"holder_address": HOLDERS[name], "block_number": block, "balance_raw": raw, "balance": "unused"}
        for name, block, raw in known
    ]
    publish(world.settings.serving_dir, 1, rows)
    with world.client() as client:
        answer = client.get(f"/v1/tokens/{WIDE_TOKEN_ID}/cap-table/changes?from=block:100&to=block:150").json()
    assert differences(answer) == [
        ("h1", "Gone", str(-largest)),
        ("h3", "New", str(largest)),
        ("h4", "New", str(largest - 1)),
        ("h2", "Changed", str(largest - 2)),
    ]
    assert [row["difference"] for row in answer["data"]] == [
        text_of(raw, 77) for raw in (-largest, largest, largest - 1, largest - 2)
    ]
    assert answer["data"][0]["quantityBefore"] == text_of(largest, 77)
    assert (answer["totals"]["supplyBefore"], answer["totals"]["supplyBeforeStatus"]) == (None, "Unknown")
    assert {(row["percentageAfter"], row["percentageAfterStatus"]) for row in answer["data"]} == {(None, "Unknown")}


@pytest.mark.parametrize(
    ("query", "blocks", "gaps"),
    [
        (f"from={stamp(150)}", (150, 400), [(stamp(200), stamp(251), "TrackingDisabled")]),
        (f"from={stamp(155)}&to={stamp(200)}", (150, 200), []),
        (f"from={stamp(250)}&to={stamp(300)}", None, []),
        (f"from=block:251&to={stamp(300)}", (251, 300), []),
        ("from=block:140&to=block:145", (140, 145), []),
        ("from=block:140&to=block:260", (140, 260), [(stamp(200), stamp(251), "TrackingDisabled")]),
    ],
)  # fmt: skip
def test_moments_and_the_gaps_between_them(
    client: TestClient[Any], query: str, blocks: tuple[int, int] | None, gaps: list[tuple[str, str, str]]
) -> None:
    answer = client.get(f"{CHANGES}?{query}")
    if blocks is None:
        problem(answer, 409, "not-covered")
        return
    found = answer.json()
    assert (found["from"]["blockNumber"], found["to"]["blockNumber"]) == blocks
    assert [(gap["from"], gap["to"], gap["reason"]) for gap in found["coverage"]["gaps"]] == gaps
    assert found["coverage"]["complete"] == (not gaps)


@pytest.mark.parametrize(
    ("query", "parameter", "before", "after"),
    [
        ("from=block:99", "from", None, 100),
        ("from=block:220&to=block:300", "from", 200, 251),
        ("from=block:120&to=block:220", "to", 200, 251),
        ("from=block:120&to=2026-02-01", "to", 400, None),
        ("from=2026-02-01", "from", 400, None),
    ],
)
def test_uncovered_moments_are_refused(
    client: TestClient[Any], query: str, parameter: str, before: int | None, after: int | None
) -> None:
    found = problem(client.get(f"{CHANGES}?{query}"), 409, "not-covered")
    assert [error["parameter"] for error in found["errors"]] == [parameter]
    assert found["before"] == (None if before is None else stamp(before))
    assert found["after"] == (None if after is None else stamp(after))


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("", "from"),
        ("from=block:300&to=block:260", "to"),
        ("from=block:100&sort=rank", "sort"),
        ("from=block:100&change=Same", "change"),
    ],
)
def test_invalid_parameters_are_named(client: TestClient[Any], query: str, parameter: str) -> None:
    found = problem(client.get(f"{CHANGES}?{query}"), 422, "invalid-parameter")
    assert [error["parameter"] for error in found["errors"]] == [parameter]


@pytest.mark.parametrize(("query", "parameter"), [("from=tomorrow", "from"), ("from=block:100&to=block:x", "to")])
def test_malformed_moments_are_named(client: TestClient[Any], query: str, parameter: str) -> None:
    found = problem(client.get(f"{CHANGES}?{query}"), 400, "malformed-parameter")
    assert [error["parameter"] for error in found["errors"]] == [parameter]


def test_token_without_collected_data_is_not_covered(client: TestClient[Any]) -> None:
    found = problem(client.get(f"/v1/tokens/{FRESH_TOKEN_ID}/cap-table/changes?from=block:100"), 409, "not-covered")
    assert (found["before"], found["after"]) == (None, None)


def test_as_a_table(client: TestClient[Any]) -> None:
    answer = client.get(f"{CHANGES}?from=block:200", headers={"Accept": "text/csv"})
    rows = list(csv.DictReader(answer.text.splitlines()))
    assert [NAMES[row["wallet"]] for row in rows] == ["h1", "h4", "h3", "h2"]
    assert (rows[1]["difference"], rows[1]["quantityStatus"]) == ("", "UnknownBefore")
    assert '"blockNumber":400' in answer.headers["x-as-of"]
    assert "TrackingDisabled" in answer.headers["x-coverage"]
