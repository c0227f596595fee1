"""Paging through activities while versions are published: changes that it survives, and changes that end it.

A plain list of rows, sorted here, gives the expected pages; a version is published before every page.
"""

import random
import shutil
from collections.abc import Callable
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pytest
from litestar.testing import TestClient

from api.engine.serving import Snapshot
from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.http.paging import Position, cursor_scope
from control.clock import utc_now
from tests.api.marts import move_pointer
from tests.api.test_errors import problem
from tests.api.world import World, hash_of, marts_rows, time_of

Kind = Literal["token", "wallet"]
Row = dict[str, Any]
URLS = {"token": f"/v1/tokens/{EXAMPLE_TOKEN_ID}/activities", "wallet": f"/v1/wallets/{EXAMPLE_WALLET_ID}/activities"}


class Ledger:
    """The activities of the example token or wallet, version by version."""

    def __init__(self, world: World, client: TestClient[Any], kind: Kind) -> None:
        self.world, self.client, self.kind = world, client, kind
        self.made = shutil.copyfile(
            world.settings.serving_dir / "marts-000000000001.duckdb", world.settings.data_dir / "made.duckdb"
        )
        self.keys = {"token": {"token_id": EXAMPLE_TOKEN_ID}, "wallet": {"wallet_id": EXAMPLE_WALLET_ID}}[kind]
        own = [row for row in marts_rows(world)[f"{kind}_activities"] if self.keys.items() <= row.items()]
        self.template = next(row for row in own if row["activity_type"] in ("Transfer", "TransferOut"))
        self.rows: list[Row] = [self.row(number, 300 + number // 3, number % 3) for number in range(12)]
        self.version = 1

    def row(self, number: int, block: int, log: int, raw: int = 1000) -> Row:
        return self.template | {
            "activity_id": f"act_{number:032x}",
            "block_number": block,
            "block_hash": hash_of(block),
            "block_time": time_of(block).replace(tzinfo=None),
            "log_index": log,
            "amount_raw": raw + number,
            "status": "Confirmed",
        }

    def publish(self) -> None:
        self.version += 1
        path = self.world.settings.serving_dir / f"marts-{self.version:012d}.duckdb"
        shutil.copyfile(self.made, path)
        with duckdb.connect(str(path)) as connection:
            table, (column, subject) = f"marts.{self.kind}_activities", next(iter(self.keys.items()))
            connection.execute(f"delete from {table} where {column} = ?", [subject])
            shuffled = random.Random(self.version).sample(self.rows, len(self.rows))
            texts = [{name: None if row[name] is None else str(row[name]) for name in row} for row in shuffled]
            # One statement: single inserts would take most of a publication's time.
            lines = pa.Table.from_pylist(texts, schema=pa.schema([(name, pa.string()) for name in self.template]))
            connection.register("lines", lines)
            connection.execute(f"insert into {table} by name select * from lines")
            connection.unregister("lines")
            connection.execute(
                "insert into marts.tenant_versions by name "
                "select * replace (? as data_version, ? as after_version) from marts.tenant_versions "
                "where data_version = 1",
                [self.version, self.version - 1],
            )
        move_pointer(path.parent, self.version, path.name)
        self.world.clock.look_again()

    def get(self, url: str) -> Any:
        return self.client.get(url)

    def ids(self, sort: str = "-date") -> list[str]:
        ordered = sorted(self.rows, key=lambda row: (row["block_number"], row["log_index"], row["activity_id"]))
        return [row["activity_id"] for row in (reversed(ordered) if sort == "-date" else ordered)]


@pytest.fixture(params=["token", "wallet"])
def ledger(world: World, client: TestClient[Any], request: pytest.FixtureRequest) -> Ledger:
    made = Ledger(world, client, request.param)
    made.publish()
    return made


def next_of(answer: Any) -> str:
    assert answer.status_code == 200, answer.text
    url: str = answer.links["next"]["url"]
    assert f"cursor={answer.json()['page']['nextCursor']}" in url
    return url


def ids_of(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [row["id"] for row in answer.json()["data"]]


def go_to_the_end(ledger: Ledger, url: str | None, between: Callable[[], None] = lambda: None) -> list[str]:
    found: list[str] = []
    while url is not None:
        answer = ledger.get(url)
        assert answer.json()["asOf"]["dataVersion"] == ledger.version
        found += ids_of(answer)
        url = answer.links["next"]["url"] if "next" in answer.links else None
        between()
    return found


@pytest.mark.ci
@pytest.mark.parametrize("sort", ["-date", "date"])
def test_paging_continues_over_new_versions(ledger: Ledger, sort: str) -> None:
    """New rows at the head, changed values and deleted version files neither lose nor repeat rows."""
    whole = ledger.ids(sort)

    def next_version() -> None:
        number = 100 + ledger.version
        ledger.rows = [row | {"status": "Finalized", "amount": "7", "amount_approx": 7} for row in ledger.rows]
        ledger.rows.append(ledger.row(number, 320 + ledger.version, 0))
        ledger.publish()
        (ledger.world.settings.serving_dir / f"marts-{ledger.version - 1:012d}.duckdb").unlink()

    found = go_to_the_end(ledger, f"{URLS[ledger.kind]}?limit=4&sort={sort}", next_version)
    if sort == "-date":
        assert found == whole
    else:
        # Sorted by time, paging also reaches rows that were added since, up to the last page's version.
        assert found[: len(whole)] == whole
        assert found == ledger.ids(sort)[: len(found)]
        assert len(found) > len(whole)


def test_changes_after_the_last_delivered_row_are_shown(ledger: Ledger) -> None:
    url = next_of(ledger.get(f"{URLS[ledger.kind]}?limit=5"))
    ledger.rows.append(ledger.row(50, 290, 0))
    ledger.rows = [row for row in ledger.rows if row["activity_id"] != ledger.ids()[6]]
    ledger.publish()
    assert go_to_the_end(ledger, url) == ledger.ids()[5:]


def appears(ledger: Ledger, first: str, last: str) -> None:
    """Add a late row in the block of the second delivered row."""
    ledger.rows.append(ledger.row(60, 303, 1))


def goes(ledger: Ledger, first: str, last: str) -> None:
    ledger.rows = [row for row in ledger.rows if row["activity_id"] != ledger.ids()[2]]


def first_goes(ledger: Ledger, first: str, last: str) -> None:
    ledger.rows = [row for row in ledger.rows if row["activity_id"] != first]


def last_goes(ledger: Ledger, first: str, last: str) -> None:
    ledger.rows = [row for row in ledger.rows if row["activity_id"] != last]


def grows(ledger: Ledger, first: str, last: str) -> None:
    ledger.rows = [
        row | {"amount_raw": row["amount_raw"] + 1} if row["activity_id"] == ledger.ids()[1] else row
        for row in ledger.rows
    ]


def swap(ledger: Ledger, first: str, last: str) -> None:
    """Swap the quantities of two rows, which keeps their sum."""
    one, other = (next(row for row in ledger.rows if row["activity_id"] == key) for key in (first, last))
    one["amount_raw"], other["amount_raw"] = other["amount_raw"], one["amount_raw"]


def reorganised(ledger: Ledger, first: str, last: str) -> None:
    """Move a row to the same place of another block with that number, which changes its id."""
    ledger.rows = [
        row | {"activity_id": row["activity_id"] + "r", "block_hash": "0x" + "f" * 64}
        if row["activity_id"] == ledger.ids()[1]
        else row
        for row in ledger.rows
    ]


def turns(ledger: Ledger, first: str, last: str) -> None:
    """Flip the sign of an adjustment."""
    changed = {"token": {"from_address": None}, "wallet": {"direction": "In"}}[ledger.kind]
    ledger.rows = [row | changed if row["activity_id"] == ledger.ids()[1] else row for row in ledger.rows]


CHANGES = [appears, goes, first_goes, last_goes, grows, swap, reorganised, turns]


@pytest.mark.proof("a cursor expires when a delivered row changes")
@pytest.mark.parametrize(("change", "pages"), [*((change, 1) for change in CHANGES), (grows, 2)])
def test_change_among_delivered_rows_expires_the_cursor(
    ledger: Ledger, change: Callable[[Ledger, str, str], None], pages: int
) -> None:
    url, delivered = f"{URLS[ledger.kind]}?limit=4", []
    for _ in range(pages):
        answer = ledger.get(url)
        delivered += ids_of(answer)
        url = next_of(answer)
        # The second page comes from a version of its own.
        ledger.publish()
    change(ledger, delivered[0], delivered[-1])
    ledger.publish()
    found = problem(ledger.get(url), 410, "cursor-expired")
    assert "start again without a cursor" in found["detail"]
    # Paging from the start shows all rows.
    assert go_to_the_end(ledger, f"{URLS[ledger.kind]}?limit=5") == ledger.ids()


@pytest.mark.ci
@pytest.mark.parametrize("sort", ["-date", "date"])
def test_only_changes_of_filtered_rows_expire_the_cursor(ledger: Ledger, sort: str) -> None:
    kind = {"token": "Mint", "wallet": "TransferIn"}[ledger.kind]
    for row in ledger.rows[::2]:
        row["activity_type"] = kind
    ledger.publish()
    shown = {row["activity_id"] for row in ledger.rows[::2]}
    url = f"{URLS[ledger.kind]}?limit=2&type={kind}&sort={sort}"
    url = next_of(ledger.get(url))
    # A row of another type is added and removed among the delivered rows.
    late = ledger.row(70, 303 if sort == "-date" else 300, 0)
    ledger.rows.append(late)
    ledger.publish()
    answer = ledger.get(url)
    assert ids_of(answer) == [key for key in ledger.ids(sort) if key in shown][2:4]
    late["activity_type"] = kind
    ledger.publish()
    problem(ledger.get(next_of(answer)), 410, "cursor-expired")


def test_cursor_of_an_earlier_release_expires(ledger: Ledger) -> None:
    """Earlier cursors were pinned to one version and have no record of delivered rows."""
    answer = ledger.get(f"{URLS[ledger.kind]}?limit=5")
    services = ledger.client.app.state.services
    cipher, epoch = services.cursor_cipher(), services.shards.of(0).epoch()
    request: Any = type("Request", (), {"scope": {"path": URLS[ledger.kind], "query_string": b""}})()
    scope = cursor_scope(request, ledger.world.tenant_id, utc_now())
    now = cipher.decrypt(scope, epoch, answer.json()["page"]["nextCursor"])
    assert now.delivered is not None
    pinned = cipher.encrypt(scope, epoch, Position(now.version, now.key))
    problem(ledger.get(f"{URLS[ledger.kind]}?limit=5&cursor={pinned}"), 410, "cursor-expired")


def test_delivered_rows_are_read_again_once_for_each_version(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a version each page reads only its own rows, so the cost of paging is proportional to the rows."""
    url = next_of(ledger.get(f"{URLS[ledger.kind]}?limit=2"))
    ledger.publish()
    original, read = Snapshot.rows, []

    def rows(self: Snapshot, query: str, row_type: Any, **parameters: Any) -> Any:
        if query.endswith("_digest"):
            read.append((parameters["first_block"], parameters["last_block"]))
        return original(self, query, row_type, **parameters)

    monkeypatch.setattr(Snapshot, "rows", rows)
    for _ in range(3):
        url = next_of(ledger.get(url))
    assert read == [(303, 303), (302, 303), (302, 302), (301, 301)]
