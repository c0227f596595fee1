"""Guest tokens of Superset: audience, row filters, refusals. `tests/superset` has the tests of Superset itself."""

import json
import time
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.reports.schemas.superset import Dashboard, Dataset
from api.reports.superset import GuestTokenSigner, row_rules
from control import service_secrets
from tests.api.world import FOREIGN_TOKEN_ID, SUPERSET, World

DASHBOARD = Dashboard(embedded_id="dashboard", datasets=[Dataset(id=7, time_column=None)])


def link(client: TestClient[Any], report: str, **query: str) -> str:
    """Return the embed token of a link."""
    answer = client.get(f"/v1/reports/{report}", params=query)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["reportUrl"].partition("#t=")[2])


def ask(client: TestClient[Any], token: str) -> Any:
    """Ask for a guest token."""
    return client.post("/embed/superset-token", headers={"Authorization": f"Bearer {token}"})


def read(world: World, token: str, audience: str) -> dict[str, Any]:
    """Read a token as Superset does."""
    with world.store.read() as session:
        key = service_secrets.get(session, service_secrets.SUPERSET_GUEST_KEY)
    return jwt.decode(token, key.hex(), algorithms=["HS256"], audience=audience)


def test_guest_token_is_limited_to_the_tenant_and_the_token(world: World, client: TestClient[Any]) -> None:
    before = int(time.time())
    answer = ask(client, link(client, "cap-table", tokenId=EXAMPLE_TOKEN_ID))
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    claims = read(world, body["guestToken"], "ledgermart-superset")
    assert claims["type"] == "guest"
    assert claims["user"]["username"] == world.tenant_id
    expected = SUPERSET["dashboards"]["cap-table"]
    assert claims["resources"] == [{"type": "dashboard", "id": expected["embeddedId"]}]
    assert (body["embeddedId"], body["embedder"]) == (expected["embeddedId"], expected["embedder"])
    key = world.subject_keys[EXAMPLE_TOKEN_ID]
    assert claims["rls_rules"] == [
        {"clause": f"tenant_id = '{world.tenant_id}'"},
        {"dataset": 3, "clause": f"subject_key = {key}"},
    ]
    assert before + 300 <= claims["exp"] <= time.time() + 300
    assert datetime.fromisoformat(body["expiresAt"]) == datetime.fromtimestamp(claims["exp"], UTC)
    assert body["supersetUrl"] == world.settings.superset_url


def test_range_limits_datasets_with_a_time(world: World, client: TestClient[Any]) -> None:
    token = link(
        client,
        "wallet-activity",
        walletId=EXAMPLE_WALLET_ID,
        **{"from": "2026-02-01", "to": "2026-02-01T06:30:00+02:00"},
    )
    claims = read(world, ask(client, token).json()["guestToken"], "ledgermart-superset")
    key = world.subject_keys[EXAMPLE_WALLET_ID]
    assert claims["rls_rules"][1:] == [
        {"dataset": 4, "clause": f"subject_key = {key}"},
        {
            "dataset": 5,
            "clause": f"subject_key = {key} and block_time >= timestamp '2026-02-01 00:00:00' "
            "and block_time < timestamp '2026-02-01 04:30:00'",
        },
    ]


def test_dashboard_can_be_framed_only_by_the_tenants_sites(world: World, client: TestClient[Any]) -> None:
    origins = ["https://portal.example", "http://10.0.0.5:8443"]
    client.put("/v1/reports/embed-origins", json={"embedOrigins": origins})
    body = ask(client, link(client, "cap-table", tokenId=EXAMPLE_TOKEN_ID)).json()
    claims = read(world, body["frame"], "ledgermart-superset-frame")
    assert claims["origins"] == [world.settings.public_origin, *origins]
    with pytest.raises(jwt.InvalidAudienceError):
        read(world, body["frame"], "ledgermart-superset")
    with world.client("foreign") as foreign:
        theirs = ask(foreign, link(foreign, "cap-table", tokenId=FOREIGN_TOKEN_ID)).json()
    assert read(world, theirs["frame"], "ledgermart-superset-frame")["origins"] == [world.settings.public_origin]


def test_guest_token_ends_with_the_session(world: World) -> None:
    now = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    signer = GuestTokenSigner(b"k" * 32, "http://127.0.0.1:8088", "http://127.0.0.1:8000")
    end = datetime(2026, 3, 1, 12, 1, tzinfo=UTC)
    assert signer.sign(world.tenant_id, DASHBOARD, [], [], now, end).expires_at == end
    later = datetime(2026, 3, 1, 20, tzinfo=UTC)
    assert signer.sign(world.tenant_id, DASHBOARD, [], [], now, later).expires_at == datetime(
        2026, 3, 1, 12, 5, tzinfo=UTC
    )


@pytest.mark.parametrize(
    "tenant_id",
    [
        "",
        "ten_",
        "x' OR '1'='1",
        "ten_01m805847w6dg31ahdpv83mad'",
        "ten_01m805847w6dg31ahdpv83madw\n",
        "led_" + "0" * 26,
    ],
)
def test_row_filters_accept_only_valid_tenant_ids(tenant_id: str) -> None:
    with pytest.raises(ValueError, match="not the id of one"):
        row_rules(tenant_id, DASHBOARD, 1, {})


def test_the_index_has_no_dashboard(client: TestClient[Any]) -> None:
    token = client.get("/v1/reports").json()["reportUrl"].partition("#t=")[2]
    assert ask(client, token).status_code == 403


def test_a_moment_is_refused(client: TestClient[Any]) -> None:
    answer = ask(client, link(client, "cap-table", tokenId=EXAMPLE_TOKEN_ID, asOf="block:150"))
    assert (answer.status_code, answer.json()["code"]) == (422, "not-supported")


def test_removed_token_gets_no_guest_token(world: World, client: TestClient[Any]) -> None:
    token = link(client, "cap-table", tokenId=EXAMPLE_TOKEN_ID)
    assert client.delete(f"/v1/tokens/{EXAMPLE_TOKEN_ID}").status_code == 204
    assert ask(client, token).status_code == 404


@pytest.mark.parametrize("content", [None, "{", json.dumps({"dashboards": {}})])
def test_missing_provisioning_names_the_command_to_run(
    world: World, client: TestClient[Any], content: str | None
) -> None:
    path = world.settings.data_dir / "superset" / "provisioned.json"
    token = link(client, "cap-table", tokenId=EXAMPLE_TOKEN_ID)
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    answer = ask(client, token)
    assert (answer.status_code, answer.json()["code"]) == (503, "superset-not-provisioned")
    assert "make superset" in answer.json()["detail"]


def test_revocation_stops_guest_tokens(client: TestClient[Any]) -> None:
    token = link(client, "cap-table", tokenId=EXAMPLE_TOKEN_ID)
    assert client.post("/v1/reports/revocations").status_code == 201
    assert (ask(client, token).status_code, ask(client, token).json()["code"]) == (401, "token-revoked")
