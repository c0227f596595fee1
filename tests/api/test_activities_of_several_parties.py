"""Activities that are one per transaction: fee on top, several counterparties, inputs and outputs."""

import csv
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow.parquet as pq
import pytest
from litestar.testing import TestClient

from api.activities.rows import TransactionDetail
from api.engine.query_texts import load_queries
from api.examples import EXAMPLE_ACTIVITY_ID, EXAMPLE_WALLET_ID
from api.http import media_types
from pipelines.extract.utxo import collecting
from tests.api.marts import publish
from tests.api.test_analytics import rows_of, stamp
from tests.api.test_errors import problem
from tests.api.test_report_activities import DATA, rows, wallet
from tests.api.world import (
    FOREIGN_WALLET_ID,
    HOLDERS,
    World,
    copy_world,
    hash_of,
    marts_rows,
    text_of,
    time_of,
)

WALLET = f"/v1/wallets/{EXAMPLE_WALLET_ID}"
ME, A, B, C = HOLDERS.values()
FIRST, LAST = 301, 306
ETHER = 10**18
SPENT = f"{'ab' * 32}:1"
DETAIL = {
    "headerTime": 1_767_225_600,
    "inputCount": 101,
    "outputCount": 2,
    "inputs": [
        {"output": SPENT, "address": ME, "amountRaw": str(3 * ETHER + 1)},
        {"output": SPENT, "address": None, "amountRaw": None},
    ],
    "outputs": [{"address": A, "amountRaw": str(3 * ETHER)}, {"address": None, "amountRaw": "0"}],
    "spendableFromBlock": None,
}
# Type, direction, amount, fee, status of the fee, addresses of the other side, number of its parties, their status.
PAYMENT = ("TransferOut", "Out", 3 * ETHER, 21, "Paid", [A], 1, "Known")
CONSOLIDATION = ("Self", None, 0, 5, "Paid", [], 0, "None")
SHARED = ("TransferOut", "Out", 7, None, "Shared", [A, B], 3, "Several")
RECEIVED = ("TransferIn", "In", 8, None, "NotPaid", [B, C], 2, "Several")
COINBASE = ("Coinbase", "In", 50 * ETHER, None, "NotPaid", [], 0, "None")
UNREAD = ("TransferIn", "In", 9, None, "NotRead", None, None, "NotRead")
STORY = [PAYMENT, CONSOLIDATION, SHARED, RECEIVED, COINBASE, UNREAD]
IDS = [f"act_{number:032x}" for number in range(len(STORY))]


def activity(world: World, number: int) -> dict[str, Any]:
    kind, direction, raw, fee, fee_status, others, count, status = STORY[number]
    block = FIRST + number
    detail = DETAIL | ({"spendableFromBlock": 405, "inputs": [], "inputCount": 0} if kind == "Coinbase" else {})
    return {
        "tenant_id": world.tenant_id,
        "subject_key": world.subject_keys[EXAMPLE_WALLET_ID],
        "wallet_id": EXAMPLE_WALLET_ID,
        "activity_id": IDS[number],
        "activity_type": kind,
        "direction": direction,
        "status": "Finalized",
        "block_number": block,
        "block_hash": hash_of(block),
        "block_time": time_of(block).replace(tzinfo=None),
        "transaction_index": 1,
        "log_index": -1,
        "transaction_hash": f"{number:064x}",
        "counterparty_address": others[0] if status == "Known" and others else None,
        "token_address": "native",
        "token_symbol": "ETH",
        "amount_raw": raw,
        "amount": text_of(raw, 18),
        "amount_status": "Known",
        "amount_approx": float(raw) / ETHER,
        "fee_raw": fee,
        "fee": None if fee is None else text_of(fee, 18),
        "fee_status": fee_status,
        "counterparties": others,
        "counterparty_count": count,
        "counterparty_status": status,
        "detail": json.dumps(detail),
    }


@pytest.fixture(scope="module")
def parties(template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world with one activity of each kind."""
    world = copy_world(template, tmp_path_factory.mktemp("parties"))
    built = marts_rows(world)
    built["wallet_activities"] += [activity(world, number) for number in range(len(STORY))]
    publish(world.settings.serving_dir, 1, built)
    yield world
    world.store.close()


@pytest.fixture(scope="module")
def several(parties: World) -> Iterator[TestClient[Any]]:
    with parties.client() as client:
        yield client


def within(**query: str) -> str:
    asked = {"from": stamp(FIRST), "to": stamp(LAST + 1), "sort": "date"} | query
    return f"{WALLET}/activities?" + "&".join(f"{name}={value}" for name, value in asked.items())


def test_activities_have_fee_and_counterparties(several: TestClient[Any]) -> None:
    found = rows_of(several, within())
    assert [row["id"] for row in found] == IDS
    for row, (kind, direction, raw, fee, fee_status, others, count, status) in zip(found, STORY, strict=True):
        assert (row["type"], row["direction"], row["amountRaw"]) == (kind, direction, str(raw))
        assert (row["amount"], row["fee"]) == (text_of(raw, 18), None if fee is None else text_of(fee, 18))
        assert (row["feeRaw"], row["feeStatus"]) == (None if fee is None else str(fee), fee_status)
        assert [one.lower() for one in row["counterparties"]] == (others or [])
        assert (row["counterpartyCount"], row["counterpartyStatus"]) == (count, status)
        assert (row["counterparty"] is not None) == (status == "Known")
        assert "transaction" not in row


def test_an_activity_of_accounts_has_one_counterparty_or_none(several: TestClient[Any]) -> None:
    found = [row for row in rows_of(several, f"{WALLET}/activities") if row["id"] not in IDS]
    assert {row["feeStatus"] for row in found} == {"Separate"}
    for row in found:
        is_known = row["counterparty"] is not None
        assert row["counterparties"] == ([row["counterparty"]] if is_known else [])
        status = "Known" if is_known else "None"
        assert (row["counterpartyCount"], row["counterpartyStatus"]) == (int(is_known), status)
    assert {row["counterpartyStatus"] for row in found} == {"Known", "None"}


@pytest.mark.parametrize(
    ("counterparty", "numbers"),
    [(A, [0, 2]), (B, [2, 3]), (C, [3]), (f"0x{'A' * 40}", []), (ME, [])],
    ids=["single-and-first", "second-and-first", "last", "unlisted", "itself"],
)
def test_filter_finds_any_listed_counterparty(several: TestClient[Any], counterparty: str, numbers: list[int]) -> None:
    expected = [IDS[number] for number in numbers]
    assert [row["id"] for row in rows_of(several, within(counterparty=counterparty))] == expected
    assert [row["id"] for row in rows_of(several, within(counterparty="0x" + counterparty[2:].upper()))] == expected
    incoming = [one for one in expected if one == IDS[3]]
    assert [row["id"] for row in rows_of(several, within(counterparty=counterparty, direction="In"))] == incoming


def test_pages_of_a_filter_continue_over_listed_counterparties(several: TestClient[Any]) -> None:
    first = several.get(within(counterparty=B, limit="1")).json()
    second = several.get(within(counterparty=B, limit="1", cursor=first["page"]["nextCursor"])).json()
    assert [row["id"] for row in first["data"] + second["data"]] == [IDS[2], IDS[3]]


def test_type_finds_coinbases(several: TestClient[Any]) -> None:
    assert [row["id"] for row in rows_of(several, within(type="Coinbase"))] == [IDS[4]]


def test_one_activity_has_its_transaction(several: TestClient[Any]) -> None:
    listed = several.get(within()).json()
    one = several.get(f"{WALLET}/activities/{IDS[0]}").json()
    transaction, as_of, currency = one.pop("transaction"), one.pop("asOf"), one.pop("currency")
    assert one == listed["data"][0]
    assert (as_of, currency) == (listed["asOf"], "USD")
    shown = listed["data"][0]["counterparty"]
    assert transaction == {
        "headerTime": "2026-01-01T00:00:00Z",
        "inputCount": 101,
        "outputCount": 2,
        "inputs": [
            {"output": SPENT, "address": ME, "amount": "3.000000000000000001", "amountRaw": str(3 * ETHER + 1)},
            {"output": SPENT, "address": None, "amount": None, "amountRaw": None},
        ],
        "outputs": [
            {"address": shown, "amount": "3", "amountRaw": str(3 * ETHER)},
            {"address": None, "amount": "0", "amountRaw": "0"},
        ],
        "spendableFromBlock": None,
    }
    assert several.get(f"{WALLET}/activities/{IDS[4]}").json()["transaction"]["spendableFromBlock"] == 405
    assert several.get(f"{WALLET}/activities/{EXAMPLE_ACTIVITY_ID}").json()["transaction"] is None


def test_one_activity_explains_itself(several: TestClient[Any]) -> None:
    explanation = several.get(f"{WALLET}/activities/{IDS[0]}?explain=true").json()["explanation"]
    assert explanation["quantity"]["movements"]["latest"] == [IDS[0]]
    assert "explanation" not in several.get(f"{WALLET}/activities/{IDS[0]}").json()


def test_unknown_activities_and_those_of_others_are_404(parties: World, several: TestClient[Any]) -> None:
    for activity_id in (f"act_{99:032x}", "their-wact-1", "x" * 300):
        detail = problem(several.get(f"{WALLET}/activities/{activity_id}"), 404, "activity-not-found")["detail"]
        assert "activity" in detail
    problem(several.get(f"/v1/wallets/{FOREIGN_WALLET_ID}/activities/their-wact-1"), 404, "wallet-not-found")
    headers = parties.headers("foreign")
    problem(
        several.get(f"/v1/wallets/{FOREIGN_WALLET_ID}/activities/{IDS[0]}", headers=headers), 404, "activity-not-found"
    )
    own = several.get(f"/v1/wallets/{FOREIGN_WALLET_ID}/activities/their-wact-1", headers=headers)
    assert own.json()["amountRaw"] == "42"


def test_files_list_counterparties(several: TestClient[Any]) -> None:
    expected = rows_of(several, within())
    as_csv = several.get(within(), headers={"Accept": media_types.CSV}).text
    found = list(csv.DictReader(io.StringIO(as_csv)))
    assert [json.loads(row["counterparties"]) for row in found] == [row["counterparties"] for row in expected]
    names = ("counterpartyCount", "counterpartyStatus", "fee", "feeRaw", "feeStatus")
    shown = [[("" if row[name] is None else str(row[name])) for name in names] for row in expected]
    assert [[row[name] for name in names] for row in found] == shown
    as_lines = several.get(within(), headers={"Accept": media_types.NDJSON}).text.splitlines()
    assert [json.loads(line) for line in as_lines] == expected
    content = several.get(within(), headers={"Accept": media_types.PARQUET}).content
    table = pq.read_table(io.BytesIO(content)).to_pylist()
    assert [json.loads(row["counterparties"]) for row in table] == [row["counterparties"] for row in expected]
    assert [[row[name] for name in names] for row in table] == [[row[name] for name in names] for row in expected]


def test_lists_and_reports_do_not_read_the_detail() -> None:
    reading = {name for name, text in load_queries().items() if "detail" in text and "activities" in text}
    assert reading == {"wallet_activity"}


def test_report_shows_and_finds_several_counterparties(several: TestClient[Any]) -> None:
    bounds = {"from": stamp(FIRST), "to": stamp(LAST + 1)}
    headers = wallet(several, **bounds)
    listed = {row["id"]: row for row in rows_of(several, within())}
    found = rows(several, headers, sort="date")
    assert found == [listed[one] for one in IDS]
    # The report finds parts of addresses, in any case.
    assert [row["id"] for row in rows(several, headers, sort="date", q=C[:20].upper())] == [IDS[3]]
    assert several.get(f"{DATA}/summary", headers=headers).json()["counterpartyCount"] == len({A, B, C})


def test_bi_rows_sum_to_the_change_of_the_balance(parties: World, tmp_path: Path) -> None:
    (published,) = parties.settings.serving_dir.glob("marts-*.duckdb")
    path = shutil.copy(published, tmp_path)
    with duckdb.connect(str(path), read_only=True) as connection:
        found = connection.execute(
            "select signed_amount, fee, fee_exact from bi.wallet_activities where activity_id = any(?) "
            "order by activity_id",
            [IDS],
        ).fetchall()
    signs = {"In": 1, "Out": -1, None: 0}
    changes = [signs[direction] * raw - (fee or 0) for _, direction, raw, fee, *_ in STORY]
    assert [signed for signed, *_ in found] == pytest.approx([change / ETHER for change in changes], abs=1e-30)
    assert [fee for *_, fee in found] == [None if one[3] is None else text_of(one[3], 18) for one in STORY]


def test_the_api_reads_all_that_the_family_describes() -> None:
    written = collecting._Detail(
        header_time=1,
        input_count=2,
        output_count=3,
        inputs=[collecting._ShownInput(SPENT, None, None)],
        outputs=[collecting._ShownOutput(A, "5")],
        spendable_from_block=101,
    )
    read = msgspec.json.decode(msgspec.json.encode(written), type=TransactionDetail)
    assert msgspec.to_builtins(read) == msgspec.to_builtins(written)


def test_version_of_an_older_release_is_not_read(world: World) -> None:
    path = publish(world.settings.serving_dir, 1, marts_rows(world))
    with duckdb.connect(str(path)) as connection:
        for column in ("counterparties", "fee_raw", "detail"):
            connection.execute(f"alter table marts.wallet_activities drop column {column}")
    with world.client() as client:
        headers = wallet(client)
        for url, more in (
            (f"{WALLET}/activities", {}),
            (f"{WALLET}/activities?counterparty={A}&type=Fee", {}),
            (f"{WALLET}/activities/{EXAMPLE_ACTIVITY_ID}", {}),
            (f"{DATA}/summary", headers),
            (f"{DATA}/rows", headers),
            (f"{DATA}/rows?q=0x&sort=value", headers),
        ):
            answer = client.get(url, headers=more)
            assert (url, answer.status_code) == (url, 503), answer.text
