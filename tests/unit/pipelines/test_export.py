"""Exports: exactly one tenant's rows with every digit, in files readable by other programs."""

import csv
import json
import os
import stat
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from openpyxl.utils.escape import unescape

from cli.main import main
from control.settings import Settings, load_settings
from pipelines.deliver.export import ExportError, Format, Listener, export
from tests.api import marts
from tests.templates import open_migrated
from warehouse.folders import FolderBusyError, new_folder
from warehouse.port import NothingPublishedError

_HUGE = 2**256 - 1
_AT = "2026-03-01 00:00:01.5"


# Marts without rows below, each with the mart that supplies its rows.
_ROW_OF = {"cap_tables": "token_holders", "cap_table_summaries": "tokens", "address_names": "tokens"}


def _activity(tenant: str, key: int, block: int, amount: int) -> dict[str, Any]:
    return {
        "tenant_id": tenant,
        "subject_key": key,
        "token_id": f"tok_{tenant}",
        "activity_id": f"act_{tenant}_{block}",
        "block_number": block,
        "block_time": _AT,
        "amount_raw": amount,
        "amount": str(amount),
        "from_address": "0xours" if tenant == "acme" else "0xtheirs",
    }


def _token(tenant: str, key: int, network: str) -> dict[str, Any]:
    named = {"tenant_id": tenant, "subject_key": key, "token_id": f"tok_{tenant}", "network": network}
    return {**named, "address": "0x" + "ab" * 20, "as_of_block_number": 9, "as_of_block_time": "2026-03-02 00:00:00"}


# Two tenants with own networks and a shared one; rows of neither tenant have no tenant_id.
_ROWS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "networks": [{"network": name} for name in ("ours", "theirs", "nobodys")],
    "collection_paces": [{"network": name, "work": "token"} for name in ("ours", "theirs")],
    "data_files": [{"network": "ours", "data_set": "aws", "file": "/secret/1.parquet", "row_count": 5}],
    "tenant_versions": [
        {"tenant_id": tenant, "data_version": number, "after_version": 6, "raised_at": _AT}
        for tenant, number in (("acme", 3), ("globex", 5))
    ],
    "tenant_heads": [{"tenant_id": "acme", "network": "ours", "head_number": 9, "final_number": 4}],
    "recomputed_ranges": [
        {"tenant_id": "acme", "shown_until_version": 6, "shown_until_data_version": 2, "subject_key": 1}
    ],
    "tokens": [_token("acme", 1, "ours"), _token("globex", 2, "ours"), _token("globex", 3, "theirs")],
    "token_activities": [
        _activity("acme", 1, 2, _HUGE),
        _activity("acme", 1, 3, 0),
        _activity("globex", 2, 4, 5),
        _activity("globex", 3, 2, 6),
    ],
    "token_holders": [
        {"tenant_id": tenant, "subject_key": key, "holder_address": f"0x{number}", "quantity_raw": number}
        for tenant, key in (("acme", 1), ("globex", 2), ("globex", 3))
        for number in (1, 2)
    ],
    "coverage": [
        {"tenant_id": "acme", "subject_key": 1, "from_block": 1, "to_block": 9},
        {"tenant_id": "globex", "subject_key": 2, "from_block": 5, "to_block": 6},
    ],
    "blocks": [
        {"network": network, "block_number": number, "block_time": _AT}
        for network in ("ours", "theirs")
        for number in range(10)
    ],
    "wallet_balances": [
        {
            "tenant_id": "acme",
            "subject_key": 7,
            "token_address": "native",
            "token_symbol": '=1+1,"x"',
            "quantity_raw": 1,
        },
        {"tenant_id": "acme", "subject_key": 7, "token_address": "0x1", "token_symbol": None, "quantity_raw": -1},
        {"tenant_id": "acme", "subject_key": 7, "token_address": "0x2", "token_symbol": "", "quantity_raw": 0},
    ],
    "addresses": [
        {"address_key": key, "address": address, "display_address": address.upper()}
        for key, address in enumerate(("0x" + "ab" * 20, "0xours", "0xtheirs", "0xnobodys"))
    ],
    "price_routes": [
        {"tenant_id": "acme", "pair_key": 1, "source_id": "src_a"},
        {"tenant_id": "globex", "pair_key": 2, "source_id": "src_b"},
    ],
    "price_markets": [{"source_id": source, "market_id": "X"} for source in ("src_a", "src_b")],
    "price_market_lists": [{"source_id": source} for source in ("src_a", "src_b")],
    "system_prices": [
        {"tenant_id": "acme", "pair_key": 1, "price": "12345678901234567890.123456789012345678", "valid_from": _AT}
    ],
    "wallet_totals": [{"tenant_id": "acme", "subject_key": 7, "unpriced": '["A, B", "C"]'}],
}

# Its rows have paths of the operator.
_EXPORTED = marts.contract().keys() - {"data_files"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = load_settings({"LEDGERMART_DATA_DIR": str(tmp_path / "data")})
    marts.publish(settings.serving_dir, 7, _ROWS)
    with duckdb.connect(str(settings.serving_dir / "marts-000000000007.duckdb")) as connection:
        described = marts.descriptions()["token_activities"]["amount"]
        connection.execute(f"comment on column marts.token_activities.amount is '{described}'")
    return settings


def _export(
    settings: Settings, folder: Path, form: Format = Format.PARQUET, tenant: str = "acme", **options: Any
) -> dict[str, Any]:
    quiet = Listener(lambda *_: None, lambda _: None)
    options = {"marts": (), "force": False, **options}
    return export(settings, (tenant.title(), tenant), form, folder, listener=quiet, **options)


def _column(folder: Path, mart: str, column: str) -> list[Any]:
    return sorted(pq.read_table(folder / f"{mart}.parquet").column(column).to_pylist(), key=str)  # type: ignore[no-untyped-call]


def test_export_has_every_row_of_its_tenant_and_none_of_another(settings: Settings, tmp_path: Path) -> None:
    manifest = _export(settings, tmp_path / "out")
    folder = tmp_path / "out"
    assert {path.stem for path in folder.glob("*.parquet")} == _EXPORTED
    for mart in _EXPORTED:
        table = pq.read_table(folder / f"{mart}.parquet")  # type: ignore[no-untyped-call]
        if "tenant_id" in table.column_names:
            own = [row for row in _ROWS.get(_ROW_OF.get(mart, mart), ()) if row["tenant_id"] == "acme"]
            assert table.column("tenant_id").to_pylist() == ["acme"] * len(own), mart
    # Rows without a tenant are exported if its own rows refer to them. Blocks 1 and 9 end its coverage.
    assert _column(folder, "networks", "network") == ["ours"]
    assert _column(folder, "collection_paces", "network") == ["ours"]
    assert _column(folder, "blocks", "block_number") == [1, 2, 3, 9]
    assert set(_column(folder, "blocks", "network")) == {"ours"}
    assert _column(folder, "addresses", "address") == ["0x" + "ab" * 20, "0xours"]
    assert _column(folder, "price_markets", "source_id") == ["src_a"]
    assert _column(folder, "price_market_lists", "source_id") == ["src_a"]
    assert manifest == json.loads((folder / "manifest.json").read_text())
    assert (manifest["dataVersion"], manifest["tenant"], manifest["tenantId"]) == (3, "Acme", "acme")
    assert {file["mart"]: file["rows"] for file in manifest["files"]}["blocks"] == 4
    assert [(s["id"], s["asOfBlockNumber"], s["asOfBlockTime"]) for s in manifest["subjects"]] == [
        ("tok_acme", 9, "2026-03-02T00:00:00Z")
    ]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_export_contains_no_number_changed_by_other_tenants(settings: Settings, tmp_path: Path) -> None:
    manifest = _export(settings, tmp_path / "out")
    assert not (tmp_path / "out" / "publication.parquet").exists()
    assert not (tmp_path / "out" / "data_files.parquet").exists()
    shown = {column["name"] for file in manifest["files"] for column in file["columns"]}
    assert shown & {"version", "batch_id", "epoch", "after_version", "shown_until_version"} == set()
    assert _column(tmp_path / "out", "recomputed_ranges", "shown_until_data_version") == [2]
    assert _column(tmp_path / "out", "tenant_versions", "data_version") == [3]


def test_parquet_keeps_every_digit_and_instants(settings: Settings, tmp_path: Path) -> None:
    _export(settings, tmp_path / "out")
    assert _column(tmp_path / "out", "token_activities", "amount_raw") == ["0", str(_HUGE)]
    assert _column(tmp_path / "out", "system_prices", "price") == ["12345678901234567890.123456789012345678"]
    assert _column(tmp_path / "out", "wallet_totals", "unpriced") == [["A, B", "C"]]
    at = datetime(2026, 3, 1, 0, 0, 1, 500_000, UTC)
    assert _column(tmp_path / "out", "token_activities", "block_time") == [at, at]
    metadata = pq.read_metadata(tmp_path / "out" / "tokens.parquet")  # type: ignore[no-untyped-call]
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert json.loads(metadata.metadata[b"columns"]).keys() == marts.contract()["tokens"].keys()


def test_csv_keeps_numbers_and_guards_formulas(settings: Settings, tmp_path: Path) -> None:
    _export(settings, tmp_path / "out", Format.CSV)
    text = (tmp_path / "out" / "wallet_balances.csv").read_text()
    rows = {row["token_address"]: row for row in csv.DictReader(text.splitlines())}
    assert rows["native"]["token_symbol"] == '\'=1+1,"x"'
    assert rows["0x1"]["quantity_raw"] == "-1"
    # Empty text is quoted, null is not.
    assert "acme,7,0x1,,," in text
    assert 'acme,7,0x2,,"",' in text
    (activity, _) = csv.DictReader((tmp_path / "out" / "token_activities.csv").read_text().splitlines())
    assert activity["block_time"] == "2026-03-01T00:00:01.500000Z"
    assert activity["amount_raw"] == str(_HUGE)
    (totals,) = csv.DictReader((tmp_path / "out" / "wallet_totals.csv").read_text().splitlines())
    assert json.loads(totals["unpriced"]) == ["A, B", "C"]


def _sheet(folder: Path, mart: str) -> list[dict[str, Any]]:
    """Return the rows of a workbook's first sheet by column, as a spreadsheet program reads them."""
    book = openpyxl.load_workbook(folder / f"{mart}.xlsx")
    head, *rows = [
        [(unescape(cell.value) if cell.data_type == "s" else cell.value, cell.data_type) for cell in row]
        for row in book.worksheets[0].iter_rows()
    ]
    return [dict(zip([name for name, _ in head], row, strict=True)) for row in rows]


def test_a_workbook_has_each_amount_as_a_number_and_as_exact_text(settings: Settings, tmp_path: Path) -> None:
    manifest = _export(settings, tmp_path / "out", Format.XLSX)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "manifest.json",
        *(f"{mart}.xlsx" for mart in _EXPORTED),
    }
    assert {file["mart"]: file["rows"] for file in manifest["files"]}["wallet_balances"] == 3
    activities = {row["activity_id"][0]: row for row in _sheet(tmp_path / "out", "token_activities")}
    huge = activities["act_acme_2"]
    assert huge["amount_raw (number, 15 digits)"] == (float(_HUGE), "n")
    assert huge["amount_raw (exact)"] == (str(_HUGE), "s")
    assert huge["amount (exact)"] == (str(_HUGE), "s")
    assert huge["block_time (UTC)"] == (datetime(2026, 3, 1, 0, 0, 1, 500_000), "d")  # noqa: DTZ001 - as cells have it
    assert huge["block_number"] == (2, "n")
    assert "amount_approx" not in huge
    assert activities["act_acme_3"]["amount_raw (number, 15 digits)"] == (0, "n")
    (price,) = _sheet(tmp_path / "out", "system_prices")
    assert price["price (exact)"] == ("12345678901234567890.123456789012345678", "s")
    assert price["valid_until (UTC)"] == (None, "n")
    (totals,) = _sheet(tmp_path / "out", "wallet_totals")
    assert json.loads(totals["unpriced"][0]) == ["A, B", "C"]
    described = openpyxl.load_workbook(tmp_path / "out" / "tokens.xlsx")["columns"]
    assert {row[0].value for row in described.iter_rows(min_row=2)} <= marts.contract()["tokens"].keys()


def test_marts_describe_each_text_column_with_decimals_as_such() -> None:
    for mart, columns in marts.contract().items():
        for name, kind in columns.items():
            if kind == "varchar" and {f"{name}_raw", f"{name}_approx"} & columns.keys():
                assert "exact decimal text" in marts.descriptions()[mart][name], f"{mart}.{name}"


def test_texts_of_a_workbook_never_become_formulas_links_or_numbers(settings: Settings, tmp_path: Path) -> None:
    texts = ['=1+1,"x"', "https://example.org", "1e5", "+1", "_x0041_", "\x01", "{=1}", "=" + "x" * 300]
    rows = [{**_ROWS["wallet_balances"][0], "token_symbol": text} for text in texts]
    marts.publish(settings.serving_dir, 8, {**_ROWS, "wallet_balances": rows})
    _export(settings, tmp_path / "out", Format.XLSX, marts=("wallet_balances",))
    assert [row["token_symbol"] for row in _sheet(tmp_path / "out", "wallet_balances")] == [
        (text, "s") for text in texts
    ]
    with zipfile.ZipFile(tmp_path / "out" / "wallet_balances.xlsx") as book:
        assert b"<f>" not in book.read("xl/worksheets/sheet1.xml")
        assert not any("_rels/sheet" in name for name in book.namelist())


def test_integers_and_days_a_spreadsheet_would_change_are_texts(settings: Settings, tmp_path: Path) -> None:
    rows = [{**_ROWS["coverage"][0], "from_block": 10**15 - 1, "to_block": 10**15, "from_time": "1899-12-31 23:00:00"}]
    marts.publish(settings.serving_dir, 8, {**_ROWS, "coverage": rows})
    _export(settings, tmp_path / "out", Format.XLSX, marts=("coverage",))
    (row,) = _sheet(tmp_path / "out", "coverage")
    assert (row["from_block"], row["to_block"]) == ((10**15 - 1, "n"), (str(10**15), "s"))
    assert row["from_time (UTC)"] == ("1899-12-31 23:00:00", "s")


def test_a_workbook_of_too_many_rows_or_too_long_a_text_is_refused(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.deliver.workbook.MOST_ROWS", 1)
    with pytest.raises(
        ExportError, match="token_activities has 2 rows, and a workbook holds 1; take --format csv or par"
    ):
        _export(settings, tmp_path / "out", Format.XLSX, marts=("token_activities",))
    monkeypatch.undo()
    rows = [{**_ROWS["wallet_balances"][0], "token_symbol": "x" * 32_768}]
    marts.publish(settings.serving_dir, 8, {**_ROWS, "wallet_balances": rows})
    with pytest.raises(
        ExportError, match=r"wallet_balances: token_symbol has a text of more than 32,767 characters; take"
    ):
        _export(settings, tmp_path / "out", Format.XLSX, marts=("wallet_balances",))
    assert not (tmp_path / "out").exists()


def test_only_chosen_marts_are_exported(settings: Settings, tmp_path: Path) -> None:
    manifest = _export(settings, tmp_path / "out", tenant="globex", marts=("blocks", "tokens"))
    assert [file["mart"] for file in manifest["files"]] == ["blocks", "tokens"]
    assert _column(tmp_path / "out", "blocks", "block_number") == [2, 4, 5, 6, 9, 9]
    with pytest.raises(ExportError, match="no mart 'token'; there are address_names, addresses, as_of_prices, "):
        _export(settings, tmp_path / "other", marts=("token",))
    assert not (tmp_path / "other").exists()


def test_unknown_mart_without_a_tenant_is_refused(settings: Settings, tmp_path: Path) -> None:
    with duckdb.connect(str(settings.serving_dir / "marts-000000000007.duckdb")) as connection:
        connection.execute("create table marts.secrets as select 'x' as secret")
    with pytest.raises(ExportError, match="'secrets' has no tenant_id"):
        _export(settings, tmp_path / "out")


def test_only_a_previous_export_is_replaced_and_only_on_request(settings: Settings, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    _export(settings, out, marts=("blocks",))
    with pytest.raises(ExportError, match="--force"):
        _export(settings, out)
    _export(settings, out, marts=("tokens",), force=True)
    assert {path.name for path in out.iterdir()} == {"manifest.json", "tokens.parquet"}
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "letter").write_text("mine")
    with pytest.raises(ExportError, match="is not an export"):
        _export(settings, tmp_path / "papers", force=True)
    assert (tmp_path / "papers" / "letter").read_text() == "mine"


def test_killed_export_leaves_no_output_and_the_next_one_cleans_up(settings: Settings, tmp_path: Path) -> None:
    left = tmp_path / ".out.partial"
    left.mkdir()
    (left / "tokens.parquet").write_bytes(b"half")
    _export(settings, tmp_path / "out", marts=("blocks",))
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"blocks.parquet", "manifest.json"}
    with (
        new_folder(tmp_path / "busy"),
        pytest.raises(FolderBusyError, match="another process is writing"),
    ):
        _export(settings, tmp_path / "busy")


def test_export_without_a_published_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingPublishedError, match="nothing is published"):
        _export(load_settings({"LEDGERMART_DATA_DIR": str(tmp_path)}), tmp_path / "out")


@pytest.mark.parametrize("form", list(Format))
def test_only_the_caller_can_read_an_export(
    settings: Settings, form: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(settings.data_dir))
    for variable in ("DAGSTER_HOME", "LEDGERMART_DAGSTER_DIR", "LEDGERMART_CODE_SERVER_SOCKET"):
        monkeypatch.setenv(variable, "")
    open_migrated(settings).close()
    out = tmp_path / "new" / "out"
    before = os.umask(0o022)
    try:
        for arguments in ("tenant create acme", f"export --tenant acme --format {form} --mart blocks --out {out}"):
            done = CliRunner().invoke(main, arguments.split())
            assert done.exit_code == 0, done.output
            os.umask(0o022)
    finally:
        os.umask(before)
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in (out, *out.iterdir())} == {
        "out": 0o700,
        f"blocks.{form}": 0o600,
        "manifest.json": 0o600,
    }
