"""The audit over HTTP: one event for every write, filters, pages and tables."""

from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_LEDGER, EXAMPLE_TOKEN_ID, EXAMPLE_TOKEN_OPERATION_ID, EXAMPLE_UNUSED_LEDGER
from control import access
from tests.api.document import WRITES, ask, check, example_path, role_of
from tests.api.test_errors import problem
from tests.api.world import FRESH_TOKEN_ID, World

PATH = "/v1/audit-events"
ADDRESS = "0x6B175474E89094C44Da98b954EedeAC495271d0F"
FRESH = f"/v1/tokens/{FRESH_TOKEN_ID}"

# The action of every operation that writes.
ACTIONS = {
    "accept_quarantined_price": "price-pair.review",
    "attest_token": "attestation.request",
    "attest_wallet": "attestation.request",
    "cancel_price_discovery": "price-pair.discover-cancel",
    "cancel_token_attestation": "attestation.cancel",
    "cancel_token_history_request": "history.cancel",
    "cancel_wallet_attestation": "attestation.cancel",
    "cancel_wallet_history_request": "history.cancel",
    "create_manual_prices": "manual-price.create",
    "create_pair": "price-pair.create",
    "create_price_source": "price-source.create",
    "create_priced_item": "priced-item.create",
    "create_supported_pair": "supported-pair.create",
    "create_token": "token.create",
    "create_wallet": "wallet.create",
    "disable_price_source": "price-source.disable",
    "enable_price_source": "price-source.enable",
    "patch_ledger": "ledger.update",
    "patch_pair": "price-pair.update",
    "patch_price_source": "price-source.update",
    "patch_priced_item": "priced-item.update",
    "patch_token": "token.update",
    "patch_wallet": "wallet.update",
    "put_embed_origins": "embedding.origins",
    "put_ledger": "ledger.create",
    "put_mapping_symbols": "priced-item.mapping",
    "check_token_metadata": "token.metadata",
    "put_token_priced_as": "token.link",
    "put_token_tracking": "token.tracking",
    "put_wallet_tracking": "wallet.tracking",
    "reject_quarantined_price": "price-pair.review",
    "remove_ledger": "ledger.remove",
    "remove_pair": "price-pair.remove",
    "remove_price_source": "price-source.remove",
    "remove_priced_item": "priced-item.remove",
    "remove_supported_pair": "supported-pair.remove",
    "remove_token": "token.remove",
    "remove_token_priced_as": "token.unlink",
    "remove_wallet": "wallet.remove",
    "request_price_discovery": "price-pair.discover",
    "request_token_history": "history.request",
    "request_wallet_history": "history.request",
    "revoke_reports": "embedding.revoke",
}


def newest(client: TestClient[Any], count: int) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = client.get(f"{PATH}?limit={count}").json()["data"]
    return data


@pytest.mark.parametrize(("path", "method", "operation"), WRITES)
def test_every_write_leaves_one_event(
    world: World, client: TestClient[Any], path: str, method: str, operation: dict[str, Any]
) -> None:
    before = client.get(f"{PATH}?limit=1000").json()["data"]
    role = str(role_of(operation))
    answer = ask(client, path, method, operation, world.headers(role))
    assert answer.status_code in (200, 201, 202, 204), answer.text
    (event, *rest) = client.get(f"{PATH}?limit=1000").json()["data"]
    assert rest == before
    check({"$ref": "#/components/schemas/AuditEvent"}, event)
    assert event["action"] == ACTIONS[operation["operationId"]]
    assert event["actor"] == world.principals[role].key_id
    assert event["requestId"] == answer.headers["x-request-id"]
    if not operation["operationId"].startswith(("remove_ledger", "remove_priced_item", "put_embed", "revoke_")):
        # These paths name the object by name, or not at all.
        assert event["objectId"] in example_path(path, operation) + answer.text
    assert (event["before"] is None) <= (event["after"] is not None)
    assert event["before"] != event["after"]


def test_an_event_shows_the_states_before_and_after(client: TestClient[Any]) -> None:
    history = client.post(f"{FRESH}/history-requests", json={"from": "creation"}).json()["id"]
    client.patch(FRESH, json={"name": "n"})
    client.delete(FRESH)
    removed, updated, requested = newest(client, 3)
    assert (requested["objectId"], requested["before"]) == (history, None)
    assert requested["after"]["subjectId"] == FRESH_TOKEN_ID
    assert updated["before"]["name"] is None
    assert updated["after"] == updated["before"] | {"name": "n"}
    assert (removed["before"], removed["after"]) == (updated["after"], None)


def test_an_event_names_its_request(world: World, client: TestClient[Any]) -> None:
    client.patch(FRESH, json={"name": "a"}, headers={"X-Request-Id": "mine-1"})
    answer = client.patch(FRESH, json={"name": "b"})
    client.patch(FRESH, json={"name": "c"}, headers=world.headers("operator"))
    third, second, first = newest(client, 3)
    assert (first["requestId"], second["requestId"]) == ("mine-1", answer.headers["x-request-id"])
    assert third["actor"] == world.principals["operator"].key_id


def test_failed_and_replayed_writes_leave_no_event(client: TestClient[Any]) -> None:
    body = {"ledger": EXAMPLE_LEDGER, "symbol": "DAI", "ledgerId": ADDRESS}
    client.post("/v1/tokens", json=body, headers={"Idempotency-Key": "k"})
    before = client.get(PATH).json()["data"]
    client.post("/v1/tokens", json=body, headers={"Idempotency-Key": "k"})
    client.post("/v1/tokens", json=body)
    client.delete(f"/v1/networks/ledgers/{EXAMPLE_LEDGER}")
    client.patch(FRESH, json={"name": ""})
    assert client.get(PATH).json()["data"] == before


def test_filters(world: World, client: TestClient[Any]) -> None:
    client.patch(FRESH, json={"name": "a"})
    client.delete(FRESH)
    history = f"/v1/tokens/{EXAMPLE_TOKEN_ID}/history-requests/{EXAMPLE_TOKEN_OPERATION_ID}"
    client.delete(history)
    removed, updated = client.get(PATH, params={"objectId": FRESH_TOKEN_ID}).json()["data"]
    assert (removed["action"], updated["action"]) == ("token.remove", "token.update")
    one = client.get(PATH, params={"action": "history.cancel"}).json()["data"]
    assert [event["objectId"] for event in one] == [EXAMPLE_TOKEN_OPERATION_ID]
    within = {"from": updated["occurredAt"], "to": removed["occurredAt"]}
    assert client.get(PATH, params=within).json()["data"] == [updated]
    assert client.get(PATH, params={"to": "2020-01-01"}).json()["data"] == []
    assert client.get(PATH, params={"objectId": "nothing"}).json()["data"] == []
    for query, parameter in (("action=token.drop", "action"), ("objectId=%00", "objectId")):
        found = problem(client.get(f"{PATH}?{query}"), 422, "invalid-parameter")
        assert [error["parameter"] for error in found["errors"]] == [parameter]
    problem(client.get(f"{PATH}?from=yesterday"), 400, "malformed-parameter")
    problem(client.get(f"{PATH}?actor=cli"), 400, "unknown-parameter")


def test_table_etag_changes_with_an_event_that_changes_no_configuration(world: World, client: TestClient[Any]) -> None:
    etag = client.get(PATH, headers={"Accept": "text/csv"}).headers["etag"]
    known = {"Accept": "text/csv", "If-None-Match": etag}
    assert client.get(PATH, headers=known).status_code == 304
    with world.store.write() as session:
        access.create_key(session, world.tenant_id, "viewer")
    assert client.get(PATH, headers=known).status_code == 200


def test_audit_shows_only_own_events_and_no_secret(world: World, client: TestClient[Any]) -> None:
    with world.client("foreign") as foreign:
        theirs = foreign.get(PATH).json()["data"]
        assert {event["action"] for event in theirs} == {"key.create", "ledger.create"}
        assert foreign.get(PATH, params={"objectId": world.principals["admin"].key_id}).json()["data"] == []
    assert not {event["id"] for event in theirs} & {event["id"] for event in client.get(PATH).json()["data"]}
    assert world.keys["admin"].rpartition("_")[2] not in client.get(PATH).text


def test_event_of_a_ledger(client: TestClient[Any]) -> None:
    client.delete(f"/v1/networks/ledgers/{EXAMPLE_UNUSED_LEDGER}")
    (event,) = newest(client, 1)
    assert (event["objectKind"], event["after"]) == ("ledger", None)
    assert event["before"] == {
        "network": "ethereum",
        "name": EXAMPLE_UNUSED_LEDGER,
        "displayName": None,
        "description": None,
    }
