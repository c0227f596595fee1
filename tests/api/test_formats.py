"""Pages, CSV, NDJSON and Parquet of every list have the same rows, as-of and coverage as the JSON response."""

import asyncio
import csv
import gc
import io
import json
from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from litestar import Litestar, get
from litestar.response import Stream
from litestar.testing import TestClient

from api.examples import (
    EXAMPLE_LEDGER,
    EXAMPLE_MARKET_PAIR_ID,
    EXAMPLE_SOURCE_ID,
    EXAMPLE_SYMBOL,
    EXAMPLE_TOKEN_ID,
    EXAMPLE_WALLET_ID,
)
from api.http import media_types
from api.http.calls import Call, Tabular
from api.http.formats import stream_rows
from api.reports.schemas.links import Revocation
from tests.api.document import TABULAR, example_path
from tests.api.marts import publish
from tests.api.test_attestations import record
from tests.api.test_errors import problem
from tests.api.valued import SMALL_PAIR_ID, valued_rows
from tests.api.world import BIG_TOKEN_ID, HOLDERS, World, copy_world
from warehouse.spreadsheets import guard_cell

TOKEN, WALLET = f"/v1/tokens/{EXAMPLE_TOKEN_ID}", f"/v1/wallets/{EXAMPLE_WALLET_ID}"
WALLET_ADDRESS = HOLDERS["h1"]
# Ids used instead of examples that have too few rows.
VALUES = {"list_token_prices": {"tokenId": EXAMPLE_TOKEN_ID}, "list_pair_prices": {"pairId": SMALL_PAIR_ID}}


def collection(path: str, operation: dict[str, Any]) -> str:
    """Return the URL of all rows of a list, with only the required query parameters."""
    required = {
        one["name"]: one["example"] for one in operation["parameters"] if one["in"] == "query" and one["required"]
    }
    address = example_path(path, operation, VALUES.get(operation["operationId"]))
    return f"{address}?{urlencode(required)}" if required else address


# The URL of every list in the document.
LISTS = {param.values[2]["operationId"]: collection(*param.values[::2]) for param in TABULAR}
PAGED = [
    LISTS[operation["operationId"]]
    for _, _, operation in (param.values for param in TABULAR)
    if "limit" in {parameter["name"] for parameter in operation["parameters"]}
]
SORTED = [
    f"{url}{'&' if '?' in url else '?'}sort={order}"
    for url, operation in ((LISTS[one.values[2]["operationId"]], one.values[2]) for one in TABULAR)
    for parameter in operation["parameters"]
    if parameter["name"] == "sort"
    for order in parameter["schema"]["enum"]
]
NARROWED = [
    "/v1/tokens?sort=-symbol&trackingStatus=enabled",
    f"/v1/tokens/{BIG_TOKEN_ID}/activities",
    f"{TOKEN}/cap-table?asOf=block:305&sort=wallet",
    f"/v1/tokens/{BIG_TOKEN_ID}/cap-table",
    f"{WALLET}/balances?asOf=block:150",
    f"{WALLET}/balances?interval=1h",
    f"/v2/pairs/{SMALL_PAIR_ID}/prices/history?priceSource=src_kraken",
    f"/v2/pairs/{SMALL_PAIR_ID}/prices/history?interval=1h&from=2026-01-31T20:00:00Z&to=2026-02-02",
]

ALL = [*LISTS.values(), *NARROWED]


@pytest.fixture(scope="module")
def unchanged(valued_template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world with at least three rows in every paged list."""
    world = copy_world(valued_template, tmp_path_factory.mktemp("full"))
    records = [record(world, subject, number, block) for subject in (EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID)
               for number, block in ((1, 160), (2, 120), (3, 160), (4, 300))]  # fmt: skip
    publish(world.settings.serving_dir, 1, valued_rows(world) | {"attestations": records})
    with world.client() as client:
        for number in range(3):
            past = {"from": f"block:{number}"}
            discovery = {"from": "2026-01-01", "to": f"2026-01-{2 + number:02d}", "windowSize": "hour"}
            wallet = {"ledger": EXAMPLE_LEDGER, "ledgerId": f"0x{number + 1:040x}"}
            for method, path, body in (
                ("POST", f"{TOKEN}/history-requests", past),
                ("POST", f"{WALLET}/history-requests", past),
                ("POST", f"/v2/pairs/{EXAMPLE_MARKET_PAIR_ID}/prices/discovery", discovery),
                ("POST", "/v1/wallets", wallet),
                ("PUT", "/v1/networks/ethereum/ledgers", {"name": f"more-{number}"}),
            ):
                answer = client.request(method, path, json=body)
                assert answer.status_code in (201, 202), answer.text
        supported = {"pricedAs": EXAMPLE_SYMBOL, "priceType": "Market"}
        assert client.post(f"/v2/price-sources/{EXAMPLE_SOURCE_ID}/pairs", json=supported).status_code == 201
    yield world
    world.store.close()


def lists_all(answer: dict[str, Any]) -> bool:
    """Return whether the rows lack nothing except the gaps named by the coverage."""
    return answer.get("holdersStatus", "Complete") == "Complete" and answer.get("holdingsComplete", True)


def json_rows(client: TestClient[Any], url: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    answer = client.get(url).json()
    if "interval=" in url and "/balances" in url:
        return [{"token": one["token"], **point} for one in answer["history"] for point in one["points"]], answer
    found = [answer[name] for name in ("data", "points", "current", "history") if isinstance(answer.get(name), list)]
    return found[0], answer


def flat(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def cell(row: dict[str, Any], column: str) -> Any:
    """Return a row's value in a column such as `token.symbol`; null if the outer object is null."""
    if column in row:
        return row[column]
    outer, _, inner = column.partition(".")
    found = row[outer]
    return None if found is None else cell(found, inner)


def is_shown(row: dict[str, Any], name: str, columns: Sequence[str]) -> bool:
    """Return whether a value has a column: its own, a JSON column of an outer object, or columns of its fields."""
    # Deprecated: only in JSON and NDJSON.
    is_old = name == "date" and "from" in row
    around = [".".join(name.split(".")[:count]) for count in range(1, name.count(".") + 2)]
    return is_old or any(one in columns or any(column.startswith(f"{one}.") for column in columns) for one in around)


def as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


@pytest.mark.proof("pages have each row once, in the order of the whole list")
@pytest.mark.parametrize("url", [*PAGED, *SORTED, *(url for url in NARROWED if "/balances" not in url)])
def test_pages_have_each_row_once_in_the_order_of_the_full_list(reader: TestClient[Any], url: str) -> None:
    separator = "&" if "?" in url else "?"
    answer = reader.get(f"{url}{separator}limit=1000").json()
    whole = [json.dumps(row) for row in answer["data"]]
    assert answer["page"]["nextCursor"] is None
    assert len(whole) == len(set(whole)) >= 3
    for limit in (1, len(whole)) if "sort=" in url else (1, 2, len(whole)):
        found: list[str] = []
        following: str | None = f"{url}{separator}limit={limit}"
        while following:
            page = reader.get(following)
            rows, cursor = page.json()["data"], page.json()["page"]["nextCursor"]
            assert len(rows) == min(limit, len(whole) - len(found))
            found += [json.dumps(row) for row in rows]
            following = page.links["next"]["url"] if cursor else None
            assert ("next" in page.links) == (cursor is not None)
        assert found == whole


@pytest.mark.proof("all formats have the same rows")
@pytest.mark.parametrize(("url", "batch"), [(LISTS["list_tokens"], 5_000), *((url, 2) for url in ALL)])
def test_all_formats_have_the_same_rows(
    reader: TestClient[Any], url: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = reader
    for size in ("batch_rows", "column_rows"):
        monkeypatch.setattr(f"api.http.calls.Services.{size}", batch)
    rows, answer = json_rows(client, url)
    assert rows

    ndjson = client.get(url, headers={"Accept": "application/x-ndjson"})
    assert ndjson.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in ndjson.text.splitlines()] == rows

    as_csv = client.get(url, headers={"Accept": "text/csv"})
    assert as_csv.headers["content-type"] == "text/csv; header=present; charset=utf-8"
    columns = as_csv.text.splitlines()[0].split(",")
    assert all(is_shown(row, name, columns) for row in rows for name in flat(row))
    expected = [{column: cell(row, column) for column in columns} for row in rows]
    assert list(csv.DictReader(io.StringIO(as_csv.text, newline=""))) == [
        {column: as_text(value) for column, value in row.items()} for row in expected
    ]

    parquet = client.get(url, headers={"Accept": "application/vnd.apache.parquet"})
    table = pq.read_table(pa.BufferReader(parquet.content))
    assert table.schema.names == columns
    for row, found in zip(expected, table.to_pylist(), strict=True):
        for name, value in row.items():
            at = found[name]
            if isinstance(value, (list, dict)):
                assert json.loads(at) == value
            elif hasattr(at, "hour"):
                assert at == datetime.fromisoformat(value)
            else:
                assert at == value
    assert not any(pa.types.is_floating(kind) or pa.types.is_decimal(kind) for kind in table.schema.types)

    told = {name: answer[name] for name in ("asOf", "coverage") if name in answer}
    if "coverage" in told and not lists_all(answer):
        told["coverage"]["complete"] = False
    for name, header in (("asOf", "x-as-of"), ("coverage", "x-coverage")):
        if name in answer:
            assert json.loads(ndjson.headers[header]) == told[name]
            assert as_csv.headers[header] == ndjson.headers[header]
            assert json.loads(table.schema.metadata[name.encode()]) == told[name]


@pytest.mark.ci
@pytest.mark.parametrize(
    ("url", "subject", "named"),
    [
        (f"{TOKEN}/cap-table?asOf=2026-02-01T01:00:00Z", TOKEN, "SMALL-cap-table-2026-02-01"),
        (f"/v1/tokens/{BIG_TOKEN_ID}/cap-table", f"/v1/tokens/{BIG_TOKEN_ID}", "BIG-cap-table-2026-02-01"),
        (
            f"{TOKEN}/cap-table/changes?from=2026-02-01T00:32:00Z",
            TOKEN,
            "SMALL-cap-table-changes-2026-02-01-2026-02-01",
        ),
        (f"{TOKEN}/activities", TOKEN, "SMALL-activities-2026-02-01"),
        (f"{TOKEN}/attestations", TOKEN, "SMALL-attestations"),
        (f"{WALLET}/balances", WALLET, f"{WALLET_ADDRESS}-balances-2026-02-01"),
        (f"{WALLET}/balances?interval=1h", WALLET, f"{WALLET_ADDRESS}-balances-2026-02-01"),
        (f"{WALLET}/value-history", WALLET, f"{WALLET_ADDRESS}-value-history-2026-02-01"),
        ("/v1/tokens", None, "tokens"),
        ("/v1/networks", None, "networks"),
    ],
)
def test_files_have_all_fields_that_json_has_beside_its_rows(
    reader: TestClient[Any], url: str, subject: str | None, named: str
) -> None:
    client = reader
    expected = {
        name: value
        for name, value in client.get(url).json().items()
        if name not in ("data", "page", "points", "history", "current")
    }
    if subject is not None:
        found = client.get(subject).json()
        expected["subject"] = {name: found.get(name) for name in ("id", "symbol", "name", "ledger", "ledgerId")}
        expected["subject"] |= {"kind": "token" if "/tokens/" in subject else "wallet"}
    if "coverage" in expected and not lists_all(expected):
        expected["coverage"]["complete"] = False
    in_header = {name: value for name, value in expected.items() if name not in ("asOf", "coverage")}

    forms = {form: client.get(url, headers={"Accept": form}) for form in media_types.FILES}
    for form, answer in forms.items():
        assert json.loads(answer.headers.get("x-context", "{}")) == in_header
        extension = media_types.EXTENSIONS[form]
        assert answer.headers["content-disposition"] == f'attachment; filename="{named}.{extension}"'
    metadata = pq.read_schema(pa.BufferReader(forms[media_types.PARQUET].content)).metadata
    assert json.loads(metadata[b"context"]) == expected

    plain = forms[media_types.CSV].text
    separator = "&" if "?" in url else "?"
    commented = client.get(f"{url}{separator}context=comment", headers={"Accept": media_types.CSV})
    comment, _, rest = commented.text.partition("\r\n")
    assert comment.startswith("# {")
    assert (json.loads(comment.removeprefix("# ")), rest) == (expected, plain)

    widened = client.get(f"{url}{separator}context=columns", headers={"Accept": media_types.CSV})
    flattened = {name: as_text(value) for name, value in flat(expected, "context.").items()}
    rows = list(csv.DictReader(io.StringIO(plain, newline="")))
    assert list(csv.DictReader(io.StringIO(widened.text, newline=""))) == [row | flattened for row in rows]
    assert len({answer.headers["etag"] for answer in (commented, widened, forms[media_types.CSV])}) == 3


def test_files_show_addresses_that_the_marts_have_no_form_of(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("control.networks.evm.EvmAddressCodec.present", lambda _, stored: stored.upper())
    publish(world.settings.serving_dir, 2, valued_rows(world) | {"addresses": []})
    with world.client() as client:
        url = f"/v1/tokens/{BIG_TOKEN_ID}/cap-table"
        expected = client.get(url).json()["data"]
        file = client.get(url, headers={"Accept": media_types.CSV}).text
    assert [row["wallet"] for row in csv.DictReader(io.StringIO(file))] == [row["wallet"] for row in expected]
    assert all(row["wallet"].startswith("0X") for row in expected)


def test_own_names_are_the_same_in_all_forms(client: TestClient[Any]) -> None:
    url = f"{TOKEN}/cap-table"
    holder = {"ledger": EXAMPLE_LEDGER, "ledgerId": client.get(url).json()["data"][1]["wallet"]}
    wallet = client.post("/v1/wallets", json=holder).json()["id"]
    for name in ("=1+1", '+"a", b', "a \\ b"):
        assert client.patch(f"/v1/wallets/{wallet}", json={"name": name}).status_code == 200
        expected = client.get(url).json()["data"]
        assert [row["name"] for row in expected].count(name) == 1
        ndjson = client.get(url, headers={"Accept": media_types.NDJSON}).content
        assert [json.loads(line) for line in ndjson.splitlines()] == expected
        table = pq.read_table(pa.BufferReader(client.get(url, headers={"Accept": media_types.PARQUET}).content))
        assert table["name"].to_pylist() == [row["name"] for row in expected]
        cells = csv.DictReader(io.StringIO(client.get(url, headers={"Accept": media_types.CSV}).text, newline=""))
        assert [row["name"] for row in cells] == [guard_cell(row["name"]) or "" for row in expected]


def test_file_with_unknown_holdings_is_not_complete(reader: TestClient[Any]) -> None:
    url = f"{WALLET}/value-history?from=2026-02-01T00:40:00Z"
    answer, sent = reader.get(url).json(), reader.get(url, headers={"Accept": media_types.CSV}).headers
    assert (answer["coverage"]["complete"], answer["holdingsComplete"]) == (True, False)
    assert json.loads(sent["x-coverage"]) == answer["coverage"] | {"complete": False}


def test_context_is_refused_for_other_formats_than_csv(reader: TestClient[Any]) -> None:
    for form in ("application/json", media_types.NDJSON, media_types.PARQUET):
        answer = problem(reader.get(f"{TOKEN}/cap-table?context=columns", headers={"Accept": form}), 400, "csv-only")
        assert [error["parameter"] for error in answer["errors"]] == ["context"]
    answer = reader.get(f"{TOKEN}/cap-table?context=rows", headers={"Accept": media_types.CSV})
    assert "use one of columns, comment" in problem(answer, 422, "invalid-parameter")["detail"]
    assert reader.get("/v1/priced-items/BTC?context=columns").json()["code"] == "unknown-parameter"


def test_file_names_have_safe_characters_only(client: TestClient[Any]) -> None:
    for name, named in (('a"b/../c\r\n', "a-b-..-c-balances"), ("\u91d1\u5eab", "0x1111")):
        assert client.patch(WALLET, json={"name": name.strip()}).status_code == 200
        sent = client.get(f"{WALLET}/balances", headers={"Accept": media_types.CSV}).headers
        assert sent["content-disposition"].startswith(f'attachment; filename="{named}')
        assert json.loads(sent["x-context"])["subject"]["name"] == name.strip()


def test_files_refuse_the_parameters_of_pages(reader: TestClient[Any]) -> None:
    cursor = reader.get(f"{TOKEN}/activities?limit=1").json()["page"]["nextCursor"]
    for form in media_types.FILES:
        for query, names in (("limit=2", ["limit"]), (f"limit=1&cursor={cursor}", ["limit", "cursor"])):
            answer = problem(reader.get(f"{TOKEN}/activities?{query}", headers={"Accept": form}), 400, "pages-only")
            assert [error["parameter"] for error in answer["errors"]] == names
            assert "all rows" in answer["detail"]


def test_an_empty_collection_has_a_header(reader: TestClient[Any]) -> None:
    answer = reader.get(f"{TOKEN}/activities?from=2030-01-01", headers={"Accept": "text/csv"})
    assert answer.text.startswith("id,type,date,status,fromWallet,")
    assert len(answer.text.splitlines()) == 1
    parquet = reader.get(f"{TOKEN}/activities?from=2030-01-01", headers={"Accept": "application/vnd.apache.parquet"})
    assert pq.read_table(pa.BufferReader(parquet.content)).num_rows == 0


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("*/*", "application/json"),
        ("", "application/json"),
        ("text/*", "text/csv"),
        ("text/html, */*;q=0.1", "application/json"),
        ("application/json;q=0.5, text/csv", "text/csv"),
        ("application/x-ndjson;q=0.9, text/csv;q=0.8, application/json;q=0", "application/x-ndjson"),
        ("text/csv;q=0, text/*", None),
        ("text/csv;q=high", None),
    ],
)
def test_preferred_format_is_chosen(reader: TestClient[Any], accept: str, expected: str | None) -> None:
    answer = reader.get(f"{TOKEN}/activities", headers={"Accept": accept})
    if expected is None:
        problem(answer, 406, "not-acceptable")
    else:
        assert answer.headers["content-type"].split(";")[0] == expected


def test_etag_does_not_depend_on_another_tenant(world: World, client: TestClient[Any]) -> None:
    path, item = "/v1/priced-items", {"name": "Silver", "symbol": "XAG", "class": "Commodity"}
    before = client.get(path, headers={"Accept": media_types.CSV}).headers["etag"]
    assert client.post(path, json=item, headers=world.headers("foreign")).status_code == 201
    same = client.get(path, headers={"Accept": media_types.CSV, "If-None-Match": before})
    assert (same.status_code, same.headers["etag"]) == (304, before)


def test_write_during_a_download_changes_the_etag(client: TestClient[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    path, form = f"/v1/tokens/{EXAMPLE_TOKEN_ID}", {"Accept": media_types.CSV}
    tabular = Call.tabular

    def after_a_write(call: Call, *arguments: Any, **named: Any) -> Tabular[Any]:
        assert client.patch(path, json={"name": "New"}).status_code == 200
        return tabular(call, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Call, "tabular", after_a_write)
        old = client.get(f"{path}/activities", headers=form)
    new = client.get(f"{path}/activities", headers={**form, "If-None-Match": old.headers["etag"]})
    assert new.status_code == 200


@pytest.mark.parametrize("form", [media_types.CSV, media_types.NDJSON, media_types.PARQUET])
def test_file_is_closed_when_the_client_disconnects_early(form: str) -> None:
    """The request closes it, not the garbage collector, which may run in a thread that holds a lock."""
    closed: list[bool] = []

    def batches() -> Generator[Sequence[Revocation]]:
        try:
            while True:
                yield [Revocation(embed_id="x" * 100)] * 1_000
        finally:
            closed.append(True)

    @get("/file", sync_to_thread=True)
    def read_file() -> Stream:
        return stream_rows(form, Revocation, batches(), {})

    app = Litestar([read_file], openapi_config=None)

    async def ask() -> None:
        is_stuck, messages = asyncio.Event(), iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> Any:
            if (message := next(messages, None)) is not None:
                return message
            await is_stuck.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                is_stuck.set()
                await asyncio.Event().wait()

        scope: Any = {"type": "http", "method": "GET", "path": "/file", "raw_path": b"/file", "query_string": b""}
        scope |= {"headers": [], "client": ("a", 1), "server": ("b", 1), "scheme": "http", "root_path": ""}
        await app(scope | {"asgi": {"version": "3.0"}, "http_version": "1.1", "state": {}}, receive, send)
        assert closed == [True]

    gc.disable()
    try:
        asyncio.run(ask())
    finally:
        gc.enable()
