"""Every POST, repeated with its Idempotency-Key, returns the first response and is executed once."""

from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.document import KEYED, ask, example_body, example_path, stored
from tests.api.test_errors import problem
from tests.api.world import World

POSTS = [param for param in KEYED if param.values[1] == "post"]
# A change that makes each example another request; None if it has no body.
CHANGES: dict[str, dict[str, Any] | None] = {
    "accept_quarantined_price": None,
    "attest_token": {"asOf": "block:121"},
    "attest_wallet": {"asOf": "block:121"},
    "check_token_metadata": {"accept": True},
    "create_manual_prices": {"price": "7"},
    "create_pair": {"maxJump": "26"},
    "create_price_source": {"name": "Other desk"},
    "create_priced_item": {"name": "Other"},
    "create_supported_pair": {"priceType": "Bid"},
    "create_token": {"name": "Other"},
    "create_wallet": {"name": "Other"},
    "reject_quarantined_price": None,
    "request_price_discovery": {"multiplier": "2"},
    "request_token_history": {"from": "block:1"},
    "request_wallet_history": {"from": "2026-01-02"},
    "revoke_reports": None,
}


@pytest.mark.proof("a repeated POST returns its first answer and runs once")
@pytest.mark.parametrize(("path", "method", "operation"), POSTS)
def test_repeated_post_returns_the_first_response_and_another_request_with_its_key_is_refused(
    world: World, client: TestClient[Any], path: str, method: str, operation: dict[str, Any]
) -> None:
    assert "Idempotency-Key" in {parameter["name"] for parameter in operation["parameters"]}
    before = stored(world)
    headers = world.headers(**{"Idempotency-Key": "once"})
    first = ask(client, path, method, operation, headers)
    done = stored(world)
    assert first.status_code in (200, 201, 202), first.text
    assert done != before
    again = ask(client, path, method, operation, headers)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["location"] == first.headers["location"]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"

    change = CHANGES[operation["operationId"]]
    bodiless = [one.values for one in POSTS if CHANGES[one.values[2]["operationId"]] is None]
    others = [(example_path(*other[::2]), None) for other in bodiless if other[0] != path]
    if change is not None:
        others.append((example_path(path, operation), example_body(operation) | change))
    for address, body in others:
        found = problem(client.post(address, json=body, headers=headers), 422, "idempotency-key-reused")
        assert [error["parameter"] for error in found["errors"]] == ["Idempotency-Key"]
    assert stored(world) == done
