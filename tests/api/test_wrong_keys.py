"""Wrong API keys: rate limited by address, without a lookup for each."""

from typing import Any

import pytest
from litestar.testing import TestClient

from api.http.rate_limits import Refusals
from control import access
from tests.api.test_errors import problem
from tests.api.world import World


def test_many_wrong_keys_are_refused_without_a_lookup(
    world: World, client: TestClient[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up, authenticate = [], access.authenticate

    def counted(*arguments: Any) -> Any:
        looked_up.append(arguments)
        return authenticate(*arguments)

    monkeypatch.setattr(access, "authenticate", counted)
    monkeypatch.setattr(Refusals, "per_address", 3)
    assert client.get("/v1/tokens").status_code == 200
    wrong = {"Authorization": "Bearer lm_01k9zr3m5e8v2c7q4w6t1x0zzz_" + "0" * 64}
    for _ in range(3):
        problem(client.get("/v1/tokens", headers=wrong), 401, "unauthenticated")
    answer = client.get("/v1/tokens", headers=wrong)
    assert "3 wrong API keys" in problem(answer, 429, "rate-limited")["detail"]
    assert int(answer.headers["retry-after"]) <= 60
    assert len(looked_up) == 4
    # Clients may share the address, so a previously valid key is still looked up; other keys are not.
    assert client.get("/v1/tokens").status_code == 200
    problem(client.get("/v1/tokens", headers=world.headers("viewer")), 429, "rate-limited")
