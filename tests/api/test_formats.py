"""CSV, NDJSON and Parquet: the same rows as the JSON, all of them, with as-of and coverage beside."""

import asyncio
import csv
import gc
import io
import json
from collections.abc import Generator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from litestar import Litestar, get
from litestar.response import Stream
from litestar.testing import TestClient

from api import media_types
from api.calls import Call, Tabular
from api.formats import stream_rows
from api.operations import (
    EXAMPLE_MARKET_PAIR_ID,
    EXAMPLE_SOURCE_ID,
    EXAMPLE_SUPPORTED_PAIR_ID,
    EXAMPLE_TOKEN_ID,
    EXAMPLE_WALLET_ID,
)
from api.schemas.reports import Revocation
from tests.api.test_errors import problem
from tests.api.world import BIG_TOKEN_ID, World

TOKEN, WALLET = f"/v1/tokens/{EXAMPLE_TOKEN_ID}", f"/v1/wallets/{EXAMPLE_WALLET_ID}"
COLLECTIONS = [
    "/v1/networks",
    "/v1/networks/ledgers",
    "/v1/tokens",
    "/v1/tokens?sort=-symbol&trackingStatus=enabled",
    "/v1/wallets",
    f"{TOKEN}/activities",
    f"{TOKEN}/activities?type=Transfer&sort=date",
    f"/v1/tokens/{BIG_TOKEN_ID}/activities",
    f"{TOKEN}/cap-table",
    f"{TOKEN}/cap-table?sort=-rank",
    f"{TOKEN}/cap-table?asOf=block:305&sort=wallet",
    f"/v1/tokens/{BIG_TOKEN_ID}/cap-table",
    f"{WALLET}/activities",
    f"{WALLET}/balances",
    f"{WALLET}/balances?asOf=block:150",
    f"{WALLET}/balances?interval=1h",
    "/v1/priced-items",
    f"/v2/price-sources/{EXAMPLE_SOURCE_ID}/pairs",
    f"/v2/price-sources/{EXAMPLE_SOURCE_ID}/pairs/{EXAMPLE_SUPPORTED_PAIR_ID}/prices",
    f"/v2/pairs/{EXAMPLE_MARKET_PAIR_ID}/prices/async-operations",
    f"/v2/pairs/{EXAMPLE_MARKET_PAIR_ID}/prices/quarantined",
]


def json_rows(client: TestClient[Any], url: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    answer = client.get(url).json()
    if "interval=" in url:
        return [{"token": one["token"], **point} for one in answer["history"] for point in one["points"]], answer
    return answer.get("data", answer.get("current")), answer


def flat(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


@pytest.mark.parametrize("batch", [5_000, 2])
@pytest.mark.parametrize("url", COLLECTIONS)
def test_all_forms_agree(client: TestClient[Any], url: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.calls._BATCH", batch)
    rows, answer = json_rows(client, url)
    assert rows

    ndjson = client.get(url, headers={"Accept": "application/x-ndjson"})
    assert ndjson.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in ndjson.text.splitlines()] == rows

    as_csv = client.get(url, headers={"Accept": "text/csv"})
    assert as_csv.headers["content-type"] == "text/csv; header=present; charset=utf-8"
    assert list(csv.DictReader(io.StringIO(as_csv.text, newline=""))) == [
        {name: as_text(value) for name, value in flat(row).items()} for row in rows
    ]

    parquet = client.get(url, headers={"Accept": "application/vnd.apache.parquet"})
    table = pq.read_table(pa.BufferReader(parquet.content))
    assert table.num_rows == len(rows)
    for row, found in zip(rows, table.to_pylist(), strict=True):
        for name, value in flat(row).items():
            stored = json.loads(found[name]) if isinstance(value, list) else found[name]
            assert (f"{stored:%Y-%m-%dT%H:%M:%S}" in str(value)) if hasattr(stored, "hour") else (stored == value)
    assert not any(pa.types.is_floating(kind) or pa.types.is_decimal(kind) for kind in table.schema.types)

    for name, header in (("asOf", "x-as-of"), ("coverage", "x-coverage")):
        if name in answer:
            assert json.loads(ndjson.headers[header]) == answer[name]
            assert as_csv.headers[header] == ndjson.headers[header]
            assert json.loads(table.schema.metadata[name.encode()]) == answer[name]


@pytest.mark.parametrize("form", media_types.FILES)
def test_files_refuse_the_parameters_of_pages(client: TestClient[Any], form: str) -> None:
    cursor = client.get(f"{TOKEN}/activities?limit=1").json()["page"]["nextCursor"]
    for query, names in (("limit=2", ["limit"]), (f"limit=1&cursor={cursor}", ["limit", "cursor"])):
        answer = problem(client.get(f"{TOKEN}/activities?{query}", headers={"Accept": form}), 400, "pages-only")
        assert [error["parameter"] for error in answer["errors"]] == names
        assert "all rows" in answer["detail"]


def test_an_empty_collection_has_a_header(client: TestClient[Any]) -> None:
    answer = client.get(f"{TOKEN}/activities?from=2030-01-01", headers={"Accept": "text/csv"})
    assert answer.text.startswith("id,type,date,status,fromWallet,")
    assert len(answer.text.splitlines()) == 1
    parquet = client.get(f"{TOKEN}/activities?from=2030-01-01", headers={"Accept": "application/vnd.apache.parquet"})
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
def test_the_preferred_form_is_chosen(client: TestClient[Any], accept: str, expected: str | None) -> None:
    answer = client.get(f"{TOKEN}/activities", headers={"Accept": accept})
    if expected is None:
        problem(answer, 406, "not-acceptable")
    else:
        assert answer.headers["content-type"].split(";")[0] == expected


@pytest.mark.parametrize("form", ["text/csv", "application/x-ndjson", "application/vnd.apache.parquet"])
def test_an_etag_tells_nothing_of_another_tenant(world: World, client: TestClient[Any], form: str) -> None:
    path, item = "/v1/priced-items", {"name": "Silver", "symbol": "XAG", "class": "Commodity"}
    before = client.get(path, headers={"Accept": form}).headers["etag"]
    assert client.post(path, json=item, headers=world.headers("foreign")).status_code == 201
    same = client.get(path, headers={"Accept": form, "If-None-Match": before})
    assert (same.status_code, same.headers["etag"]) == (304, before)
    assert client.post(path, json=item).status_code == 201
    changed = client.get(path, headers={"Accept": form, "If-None-Match": before})
    assert changed.status_code == 200
    assert changed.headers["etag"] != before


def test_a_write_between_what_is_read_for_a_file_shows_under_its_etag(
    client: TestClient[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_file_is_closed_when_a_client_leaves_that_takes_nothing(form: str) -> None:
    """By the request, not by the garbage collector, which may run in a thread that holds a lock."""
    closed: list[bool] = []

    def batches() -> Generator[Sequence[Revocation]]:
        try:
            while True:
                yield [Revocation(embed_id="x" * 100)] * 1_000
        finally:
            closed.append(True)

    @get("/file", sync_to_thread=True)
    def read_file() -> Stream:
        return stream_rows(form, Revocation, batches(), None, None, {})

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
