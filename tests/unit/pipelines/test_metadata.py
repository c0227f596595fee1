"""Effects of readings of a contract: the first, a second that agrees, and one that contradicts."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pytest

from pipelines.chain import contracts as metadata
from pipelines.chain.contracts import store_metadata
from pipelines.raw.database import named, open_warehouse
from pipelines.tables.sources import TABLES

TOKEN, TENANT = "0xcoin", "ten_a"
TRUE = ("Fungible", "ERC-20", "GOLD", "Gold", 18)
FALSE_DECIMALS = ("Fungible", "ERC-20", "GOLD", "Gold", 6)
FALSE_KIND = ("NotFungible", "ERC-721", "GOLD", "Gold", None)
RENAMED = ("Fungible", "ERC-20", "GLD", "New Gold", 18)
Said = tuple[str, str | None, str | None, str | None, int | None]


class Contract:
    """A token's contract in a warehouse, read once a minute and block."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connection = connection
        self.block = 10
        self.now = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
        monkeypatch.setattr(metadata, "stored_now", lambda: self.now)

    def read(self, *said: Said) -> None:
        for each in said:
            self.block += 1
            self.now += timedelta(minutes=1)
            schema = TABLES["token_metadata"].schema_without("network", "read_at")
            frame = pl.DataFrame([(TOKEN, *each, None, TENANT)], schema=schema, orient="row")
            store_metadata(self.connection, "n", frame, self.block, self.block)

    @property
    def shown(self) -> tuple[Said, str]:
        """Return the current metadata and its status."""
        (row,) = self.connection.execute(
            """
            select contract_status, standard, symbol, name, decimals, metadata_status
            from raw.token_metadata inner join raw.metadata_checks using (network, token_address, tenant_id)
            """
        ).fetchall()
        return row[:5], row[5]

    @property
    def found(self) -> tuple[object, ...]:
        (row,) = self.connection.execute(
            "select found_contract_status, found_standard, found_symbol, found_name, found_decimals "
            "from raw.metadata_checks"
        ).fetchall()
        return tuple(row)

    def marks(self) -> list[str]:
        """Return the reasons of the marks of the latest reading."""
        query = "select reason from raw.changes where batch_id = ?"
        return [reason for (reason,) in self.connection.execute(query, [self.block]).fetchall()]

    def request(self, *, accept: bool) -> None:
        self.connection.execute("delete from raw.control_metadata_requests")
        self.connection.execute(
            "insert into raw.control_metadata_requests values (1, ?, ?)", [self.now, self.now if accept else None]
        )

    def is_pending(self, *, blocks: int = 1, after: timedelta = timedelta(minutes=1)) -> bool:
        self.connection.execute("create or replace temp table moved_pairs (token_address varchar, tenant_id varchar)")
        parameters = {"network": "n", "head": self.block + blocks, "now": self.now + after, "most": 10}
        return bool(self.connection.execute(*named("pending_metadata", parameters)).fetchall())


@pytest.fixture
def contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Contract]:
    with open_warehouse(tmp_path / "warehouse.duckdb") as connection:
        connection.execute(
            """
            insert into raw.control_subjects by name
            select
                1 as subject_key, 'tok_1' as subject_id, 'token' as kind, ? as tenant_id, 'led' as ledger_id,
                'n' as network, ? as address, timestamp '2026-01-01' as created_at
            """,
            [TENANT, TOKEN],
        )
        yield Contract(connection, monkeypatch)


@pytest.mark.ci
@pytest.mark.parametrize("false", [FALSE_DECIMALS, FALSE_KIND], ids=["decimals", "kind"])
@pytest.mark.parametrize(
    ("said", "in_force", "status"),
    [
        ("T", "T", "Unconfirmed"),
        ("TT", "T", "Confirmed"),
        ("F", "F", "Unconfirmed"),
        ("FT", "F", "Contradicted"),
        ("FTT", "T", "Confirmed"),
        ("TF", "T", "Contradicted"),
        ("TFT", "T", "Confirmed"),
        # A later wrong reading replaces nothing, even if repeated.
        ("TTF", "T", "Contradicted"),
        ("TTFFFF", "T", "Contradicted"),
        ("TTFT", "T", "Confirmed"),
    ],
)
def test_two_agreeing_readings_decide(contract: Contract, false: Said, said: str, in_force: str, status: str) -> None:
    meaning = {"T": TRUE, "F": false}
    contract.read(*(meaning[letter] for letter in said))
    assert contract.shown == (meaning[in_force], status)
    differs = meaning[said[-1]] if status == "Contradicted" else (None,) * 5
    assert contract.found == differs


def test_amounts_are_recomputed_only_if_the_current_reading_changed(contract: Contract) -> None:
    marks = []
    for said in (FALSE_DECIMALS, TRUE, TRUE, TRUE, FALSE_DECIMALS, FALSE_DECIMALS):
        contract.read(said)
        marks.append(contract.marks())
    assert marks == [["Metadata"], ["MetadataStatus"], ["Metadata"], [], ["MetadataStatus"], []]


def test_change_is_applied_once_a_tenant_accepts_it(contract: Contract) -> None:
    contract.read(TRUE, TRUE)
    contract.request(accept=True)
    contract.read(RENAMED)
    assert contract.shown == (TRUE, "Contradicted")  # accepted before this change was detected
    contract.request(accept=False)
    contract.read(RENAMED)
    assert contract.shown == (TRUE, "Contradicted")
    contract.request(accept=True)
    contract.read(FALSE_DECIMALS)
    assert contract.shown == (TRUE, "Contradicted")  # a different change from the accepted one
    contract.read(RENAMED)
    contract.request(accept=True)
    contract.read(RENAMED)
    assert contract.shown == (RENAMED, "Confirmed")


def test_contract_is_reread_at_another_block_at_intervals_and_on_request(contract: Contract) -> None:
    assert contract.is_pending()
    contract.read(TRUE)
    assert contract.is_pending()
    assert not contract.is_pending(blocks=0)
    contract.read(TRUE)
    assert not contract.is_pending(after=timedelta(hours=23))
    assert contract.is_pending(after=timedelta(days=1))
    contract.now += timedelta(seconds=1)
    contract.request(accept=False)
    assert contract.is_pending()
    contract.read(RENAMED)
    assert not contract.is_pending(after=timedelta(minutes=59))
    assert contract.is_pending(after=timedelta(hours=1))
    # A contract that an older release read.
    contract.connection.execute("delete from raw.metadata_checks")
    assert contract.is_pending()


def test_readings_requests_and_acceptances_ahead_of_the_clock_do_not_count(contract: Contract) -> None:
    contract.read(TRUE, TRUE)
    years = timedelta(days=1826)
    contract.now += years
    contract.request(accept=True)
    contract.read(RENAMED)
    contract.now -= years
    # The reading is ahead, and is repeated at once; the change counts as found then.
    assert contract.is_pending()
    contract.read(RENAMED)
    assert contract.shown == (TRUE, "Contradicted")
    # The request is ahead, and requests nothing now.
    assert not contract.is_pending()
    contract.request(accept=True)
    contract.read(RENAMED)
    assert contract.shown == (RENAMED, "Confirmed")
