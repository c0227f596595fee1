"""`docs/how-to/history-from-files.md`, run word for word over a year of files of AWS's schema and a local node.

Only the addresses of the node, the store and the API differ.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from control.networks.data_sets import DataSet, check_data_set
from control.networks.definitions import load_networks
from control.networks.evm import EvmAddressCodec
from pipelines.raw.database import open_warehouse
from tests import CHECKOUT
from tests.chain.process import free_port, tied_to_parent
from tests.datasets.make_year import FIRST_DAY, LAST_DAY, USDC, Year, holders, served, year_of_files
from tests.integration.harness import Service

PAGE = (CHECKOUT / "docs" / "how-to" / "history-from-files.md").read_text()
SHIPPED = CHECKOUT / "control" / "networks" / "networks.toml"
_BLOCK = re.compile(r"^```(bash|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^# (networks\.toml)\n(.*)", re.DOTALL)
_ROW = re.compile(r"^\| `([a-z-]+)` \| `([^`]+)` \|", re.MULTILINE)
# Answers for the test. The variables are the page's.
_END = """
api GET /v1/tokens/$TOKEN/coverage > coverage.json
api GET "/v1/tokens/$TOKEN/cap-table?asOf=2023-12-31&limit=500" > cap-table.json
api GET /v1/tokens/$TOKEN/history-requests/$REQUEST > request.json
api POST /v1/tokens/$TOKEN/history-requests "$ESTIMATE" > estimate.json
"""


def script() -> str:
    """Return the page's commands as one script; lines of definitions go to the end of the first network."""
    steps = ["set -euo pipefail", "trap 'kill $(jobs -p); wait' EXIT"]
    for language, text in _BLOCK.findall(PAGE):
        if language == "bash":
            steps.append(text)
        elif named := _FILE.fullmatch(text):
            steps.append(f"{sys.executable} - <<'END_OF_BLOCK'\n{_insertion(named[1], named[2])}END_OF_BLOCK")
    return "\n".join([*steps, _END])


def _insertion(path: str, lines: str) -> str:
    return (
        "from pathlib import Path\n"
        f"path, lines = Path({path!r}), {lines!r}\n"
        "head, first, others = path.read_text().split('[[network]]\\n', 2)\n"
        "path.write_text('[[network]]\\n'.join([head, first + lines + '\\n', others]))\n"
    )


def replaced(text: str, old: str, new: str) -> str:
    """Replace the one place of a text."""
    assert text.count(old) == 1, old
    return text.replace(old, new)


@pytest.mark.release
def test_a_year_of_history_is_collected_from_public_files(ready_service: Service, tmp_path: Path) -> None:
    (tmp_path / "control" / "networks").mkdir(parents=True)
    (tmp_path / "control" / "networks" / "networks.toml").write_bytes(SHIPPED.read_bytes())
    with year_of_files(tmp_path / "files") as year, served(tmp_path / "files") as store:
        port = free_port()
        commands = replaced(script(), "https://…", year.node.url)
        commands = replaced(commands, "http://127.0.0.1:8000", f"http://127.0.0.1:{port}")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGERMART_", "AWS_"))}
        environment = {
            **kept,
            "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
            "AWS_ENDPOINT_URL": store.url,
            "LEDGERMART_DATA_DIR": ready_service.variables["LEDGERMART_DATA_DIR"],
            "LEDGERMART_API_PORT": str(port),
            "LEDGERMART_DAGSTER_PORT": str(free_port()),
            "LEDGERMART_CYCLE_SECONDS": "60",
        }
        done = subprocess.run(
            tied_to_parent(["bash", "-c", commands], "TERM"),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        log = tmp_path / "up.log"
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:] + log.read_text()[-2000:]
        check_rows(year, ready_service.settings.warehouse_path)
        check_answers(year, tmp_path)
    exported = json.loads((tmp_path / "exports" / "ethereum" / "manifest.json").read_text())
    assert (exported["form"], exported["pattern"]) == ("ledgermart", "{table}-{first}-{last}.parquet")


def check_rows(year: Year, warehouse: Path) -> None:
    """Compare the year's rows with the node, and check that the files gave all of them."""
    first, last = blocks_of_year(year)
    logs = year.world.transfer_logs(first, last, USDC.address)
    expected = [(int(log["blockNumber"], 16), int(log["logIndex"], 16), str(int(log["data"], 16))) for log in logs]
    found = query(
        warehouse,
        """
        select block_number, log_index, amount_raw::varchar from raw.token_transfers
        where block_number between ? and ? order by all
        """,
        [first, last],
    )
    assert found == sorted(expected)
    assert len(found) > 3_000
    sources = query(
        warehouse, "select distinct data_set from raw.coverage where from_block <= ? and to_block >= ?", [last, first]
    )
    assert sources == [("aws",)]
    states = "select status, count(*) from raw.data_files where day between ? and ? group by status"
    assert query(warehouse, states, [FIRST_DAY, LAST_DAY]) == [("Read", last - first + 1)]
    assert query(warehouse, "select count(*) from raw.collection_failures") == [(0,)]


def check_answers(year: Year, folder: Path) -> None:
    """Check the answers of the API after the page's last step."""
    first, last = blocks_of_year(year)
    request = read(folder, "request")
    assert (request["status"], request["fromBlock"], request["toBlock"]) == ("Succeeded", first, last)
    assert read(folder, "estimate")["blocks"] == 0, "nothing is missing"
    of_year = [one for one in read(folder, "coverage")["collected"] if one["fromBlock"] == first]
    assert [(one["toBlock"], one["verified"], one["source"]) for one in of_year] == [(last, "sampled", "aws")]
    rows = read(folder, "cap-table")["data"]
    addresses = [*year.world.wallets, *holders(), year.world.deployer]
    balances = dict(zip(addresses, year.world.balances_of(USDC, addresses, last), strict=True))
    shown = {row["wallet"].lower(): int(row["quantityRaw"]) for row in rows}
    assert shown == {address: balance for address, balance in balances.items() if balance}


def read(folder: Path, name: str) -> dict[str, Any]:
    """Read an answer that the script stored."""
    answer: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return answer


def query(warehouse: Path, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    with open_warehouse(warehouse) as connection:
        return connection.execute(sql, list(parameters)).fetchall()


def blocks_of_year(year: Year) -> tuple[int, int]:
    """Return the first and the last block of the year."""
    start, end = (datetime.combine(day, time(), UTC).timestamp() for day in (FIRST_DAY, LAST_DAY + timedelta(days=1)))
    numbers = [number for number in range(year.node.head()) if start <= year.node.block_time(number) < end]
    return numbers[0], numbers[-1]


@pytest.mark.parametrize(("form", "files"), _ROW.findall(PAGE))
def test_examples_of_forms_are_valid(form: str, files: str) -> None:
    shape = EvmAddressCodec.data_set_forms[form]
    check_data_set(DataSet("past", form, files, {name: name for name in shape.columns}), EvmAddressCodec.data_set_forms)


def test_the_page_shows_every_form() -> None:
    assert [form for form, _ in _ROW.findall(PAGE)] == list(EvmAddressCodec.data_set_forms)


def test_examples_of_definitions_are_valid(tmp_path: Path) -> None:
    blocks = [text for language, text in _BLOCK.findall(PAGE) if language == "toml"]
    assert len(blocks) == 3
    first = SHIPPED.read_text().split("[[network]]\n")[1]
    path = tmp_path / "networks.toml"
    path.write_text("\n".join(["[[network]]", first, *blocks]))
    names = [data_set["name"] for text in blocks for data_set in tomllib.loads(text)["network"]["data_set"]]
    assert [one.name for one in load_networks(path, {})["ethereum"].data_sets] == names
