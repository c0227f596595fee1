"""Another tenant's objects do not exist: 404 by id, missing in lists, unusable in filters and cursors."""

from typing import Any

import pytest
from litestar.testing import TestClient

from api.operations import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.rows import HolderRow
from api.serving import Serving
from tests.api.test_errors import problem
from tests.api.world import FOREIGN_TOKEN_ID, FOREIGN_WALLET_ID, World

TABULAR = ("application/json", "text/csv", "application/x-ndjson", "application/vnd.apache.parquet")


@pytest.mark.parametrize(("kind", "foreign_id"), [("token", FOREIGN_TOKEN_ID), ("wallet", FOREIGN_WALLET_ID)])
@pytest.mark.parametrize(
    "rest", ["", "/activities", "/cap-table", "/cap-table/changes?from=block:100", "/balances", "/coverage"]
)
def test_foreign_ids_are_unknown(client: TestClient[Any], kind: str, foreign_id: str, rest: str) -> None:
    if (kind, rest.split("?")[0]) in {
        ("token", "/balances"),
        ("wallet", "/cap-table"),
        ("wallet", "/cap-table/changes"),
    }:
        code = "unknown-route"
    else:
        code = f"{kind}-not-found"
    found = problem(client.get(f"/v1/{kind}s/{foreign_id}{rest}"), 404, code)
    missing = problem(client.get(f"/v1/{kind}s/{foreign_id[:-1]}z{rest}"), 404, code)
    assert found["detail"].replace(foreign_id, "") == missing["detail"].replace(f"{foreign_id[:-1]}z", "")


def test_foreign_subjects_cannot_be_tracked(client: TestClient[Any]) -> None:
    for kind, foreign_id in (("token", FOREIGN_TOKEN_ID), ("wallet", FOREIGN_WALLET_ID)):
        answer = client.put(f"/v1/{kind}s/{foreign_id}/tracking", json={"trackingStatus": "disabled"})
        problem(answer, 404, f"{kind}-not-found")


def test_lists_hold_the_own_objects_alone(world: World) -> None:
    with world.client("foreign") as client:
        assert [token["id"] for token in client.get("/v1/tokens").json()["data"]] == [FOREIGN_TOKEN_ID]
        assert [wallet["id"] for wallet in client.get("/v1/wallets").json()["data"]] == [FOREIGN_WALLET_ID]
        assert len(client.get("/v1/networks/ledgers").json()["data"]) == 1
        for accept in TABULAR:
            content = client.get("/v1/tokens", headers={"Accept": accept}).content
            assert EXAMPLE_TOKEN_ID.encode() not in content


def test_the_same_address_shows_no_foreign_rows(world: World) -> None:
    with world.client("foreign") as client:
        assert client.get(f"/v1/tokens/{FOREIGN_TOKEN_ID}/activities").json()["data"] == []
        assert client.get(f"/v1/tokens/{FOREIGN_TOKEN_ID}/cap-table").json()["data"] == []
        past = client.get(f"/v1/tokens/{FOREIGN_TOKEN_ID}/cap-table?asOf=block:150").json()
        assert (past["data"], past["totalSupply"]) == ([], None)
        changes = client.get(f"/v1/tokens/{FOREIGN_TOKEN_ID}/cap-table/changes?from=block:100").json()
        assert (changes["data"], changes["totals"]["holdersBefore"], changes["totals"]["supplyAfter"]) == ([], 0, None)
        for moment in ("", "?asOf=block:150"):
            balances = client.get(f"/v1/wallets/{FOREIGN_WALLET_ID}/balances{moment}").json()
            assert (balances["current"], balances["history"]) == ([], [])
        assert client.get(f"/v1/tokens/{FOREIGN_TOKEN_ID}/coverage").json()["history"] == []


def test_a_foreign_key_is_no_key_to_a_row(world: World) -> None:
    """Rows are asked for by tenant as well, so that a subject key alone would not open them."""
    serving = Serving(world.settings.serving_dir, 256, 10)
    try:
        with serving.snapshot() as snapshot:
            keys = {"subject_key": world.subject_keys[EXAMPLE_TOKEN_ID], "first_rank": 1, "last_rank": 10}
            assert snapshot.rows("cap_table_by_rank", HolderRow, tenant_id=world.tenant_id, **keys)
            assert not snapshot.rows("cap_table_by_rank", HolderRow, tenant_id=world.foreign_tenant_id, **keys)
    finally:
        serving.close()


def test_a_foreign_token_is_no_filter(client: TestClient[Any]) -> None:
    answer = client.get(f"/v1/wallets/{EXAMPLE_WALLET_ID}/activities?token={FOREIGN_TOKEN_ID}")
    assert problem(answer, 422, "invalid-parameter")["errors"][0]["code"] == "unknown-token"


def test_cursors_belong_to_a_tenant(world: World, client: TestClient[Any]) -> None:
    cursor = client.get("/v1/tokens?limit=1").json()["page"]["nextCursor"]
    answer = client.get(f"/v1/tokens?limit=1&cursor={cursor}", headers=world.headers("foreign"))
    problem(answer, 400, "bad-cursor")
