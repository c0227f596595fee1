"""The audit over HTTP: one event for every write, states, filters and the ETag."""

from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_TOKEN_OPERATION_ID
from control import access
from tests.api.document import ask, check, example_path, role_of
from tests.api.test_conditional import SECTIONS
from tests.api.test_errors import problem
from tests.api.world import FRESH_TOKEN_ID, World

PATH = "/v1/audit-events"
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


@pytest.mark.proof("every write leaves one audit event")
@pytest.mark.parametrize("writes", [pytest.param(writes, id=section) for section, writes in SECTIONS.items()])
def test_every_write_leaves_one_event(world: World, client: TestClient[Any], writes: list[Any]) -> None:
    before = newest(client, 1000)
    for path, method, operation in (param.values for param in writes):
        role = str(role_of(operation))
        answer = ask(client, path, method, operation, world.headers(role))
        assert answer.status_code in (200, 201, 202, 204), answer.text
        (event, *rest) = newest(client, 1000)
        assert rest == before
        before = [event, *rest]
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


def test_table_etag_changes_with_an_event_that_changes_no_configuration(world: World, client: TestClient[Any]) -> None:
    etag = client.get(PATH, headers={"Accept": "text/csv"}).headers["etag"]
    known = {"Accept": "text/csv", "If-None-Match": etag}
    assert client.get(PATH, headers=known).status_code == 304
    with world.store.write() as session:
        access.create_key(session, world.tenant_id, "viewer")
    assert client.get(PATH, headers=known).status_code == 200
