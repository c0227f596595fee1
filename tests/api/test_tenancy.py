"""Another tenant's objects do not exist: 404 by id, missing in lists, unusable in filters and cursors."""

from typing import Any

import pytest
from litestar.testing import TestClient

from api.engine.serving import Serving
from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.reports.rows import ReconciliationRow
from tests.api.test_errors import problem
from tests.api.world import FOREIGN_TOKEN_ID, FOREIGN_WALLET_ID, HOLDERS, World, time_of

TABULAR = ("application/json", "text/csv", "application/x-ndjson", "application/vnd.apache.parquet")


def test_same_address_shows_only_own_rows(world: World) -> None:
    """Both tenants have a token and a wallet at the same addresses, with other rows each."""
    h3, h4 = HOLDERS["h3"], HOLDERS["h4"]
    with world.client("foreign") as client:

        def rows(path: str) -> list[dict[str, Any]]:
            data: list[dict[str, Any]] = client.get(path).json()["data"]
            return data

        token, wallet = f"/v1/tokens/{FOREIGN_TOKEN_ID}", f"/v1/wallets/{FOREIGN_WALLET_ID}"
        assert [(row["id"], row["amount"]) for row in rows(f"{token}/activities")] == [("act-06-1", "7")]
        for moment in ("", f"?asOf={time_of(150):%Y-%m-%dT%H:%M:%SZ}"):
            table = client.get(f"{token}/cap-table{moment}").json()
            assert [(row["wallet"], row["quantity"]) for row in table["data"]] == [(h4, "7"), (h3, "2")]
            assert table["totalSupply"] == "9"
            balances = client.get(f"{wallet}/balances{moment}").json()
            assert [(row["token"]["symbol"], row["quantityRaw"]) for row in balances["current"]] == [("ETH", "42")]
            assert {row["token"]["symbol"] for row in balances["history"]} == {"ETH"}
        changes = client.get(f"{token}/cap-table/changes?from=block:100&to=block:150").json()
        assert {(row["wallet"], row["quantityAfter"]) for row in changes["data"]} == {(h3, "2"), (h4, "7")}
        assert (changes["totals"]["holdersBefore"], changes["totals"]["supplyAfter"]) == (1, "9")
        assert [(row["id"], row["amountRaw"]) for row in rows(f"{wallet}/activities")] == [("their-wact-1", "42")]
        assert client.get(f"{token}/coverage").json()["history"] == []


@pytest.mark.parametrize("accept", TABULAR)
def test_rows_of_another_tenant_at_the_same_address_are_invisible(client: TestClient[Any], accept: str) -> None:
    for path, foreign in (
        (f"/v1/tokens/{EXAMPLE_TOKEN_ID}/activities", b"act-06-1"),
        (f"/v1/wallets/{EXAMPLE_WALLET_ID}/activities", b"their-wact-1"),
    ):
        own = [row["id"].encode() for row in client.get(path).json()["data"]]
        content = client.get(path, headers={"Accept": accept}).content
        # Parquet compresses everything but its statistics.
        assert any(one in content for one in own)
        assert foreign not in content


def test_foreign_subject_key_gives_no_rows(world: World) -> None:
    """Queries also filter by tenant, so a subject key alone does not give access."""
    serving = Serving(world.settings.serving_dir, 256, 900)
    try:
        with serving.snapshot() as snapshot:

            def counted(token: str, tenant_id: str) -> list[ReconciliationRow]:
                whose = {"subject_key": world.subject_keys[token], "tenant_id": tenant_id}
                holders = snapshot.table(tuple(whose.values()), {}, "holders_now", **whose)
                return snapshot.rows_over({"holders": holders}, "holder_reconciliations", ReconciliationRow)

            assert counted(EXAMPLE_TOKEN_ID, world.tenant_id)
            assert not counted(EXAMPLE_TOKEN_ID, world.foreign_tenant_id)
            assert counted(FOREIGN_TOKEN_ID, world.foreign_tenant_id)
            assert not counted(FOREIGN_TOKEN_ID, world.tenant_id)
    finally:
        serving.close()


def test_market_list_read_for_another_tenant_is_invisible(world: World) -> None:
    """Kraken's list was read for a pair of the first tenant; the other tenant has no pair."""
    with world.client("foreign") as client:
        for symbol in ("BTC", "USD"):
            made = client.post("/v1/priced-items", json={"symbol": symbol, "name": symbol, "class": "Other"})
            assert made.status_code == 201
        mappings = {"mappings": [{"priceSource": "src_kraken", "symbol": "XXBT"}]}
        (mapping,) = client.put("/v1/priced-items/BTC/mapping-symbols", json=mappings).json()["mappings"]
        assert mapping["mappingStatus"] == "Pending"
        assert client.get("/v1/priced-items/BTC").json()["mappings"] == [mapping]
        # No market is found in the list, and none is reported missing.
        client.post("/v1/priced-items", json={"symbol": "NONE", "name": "None", "class": "Other"})
        for symbol in ("BTC", "NONE"):
            body = {"pricedAs": symbol, "pricedIn": "USD", "priceType": "Trade", "priceSources": ["src_kraken"]}
            pair = client.post("/v2/pairs", json=body).json()
            assert (pair["mappingStatus"], pair["mappings"][0]["markets"]) == ("Pending", [])


def test_cursors_belong_to_a_tenant(world: World, client: TestClient[Any]) -> None:
    cursor = client.get("/v1/tokens?limit=1").json()["page"]["nextCursor"]
    answer = client.get(f"/v1/tokens?limit=1&cursor={cursor}", headers=world.headers("foreign"))
    problem(answer, 400, "bad-cursor")
