"""Error responses: problem details with code, request id and each wrong value."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_LEDGER, EXAMPLE_SOURCE_ID, EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from control import access
from tests.api.document import check
from tests.api.world import World

TOKEN, WALLET = f"/v1/tokens/{EXAMPLE_TOKEN_ID}", f"/v1/wallets/{EXAMPLE_WALLET_ID}"
SOURCE = f"/v2/price-sources/{EXAMPLE_SOURCE_ID}"


def pointers(found: dict[str, Any]) -> list[str]:
    """Return the JSON pointers of a problem's errors."""
    return [error["pointer"] for error in found["errors"]]


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """Check the shape of a problem and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    check({"$ref": "#/components/schemas/Problem"}, found)
    assert found["status"] == status
    assert found["code"] == code
    assert found["type"] == f"urn:ledgermart:problem:{code}"
    assert found["requestId"] == answer.headers["x-request-id"]
    assert found["detail"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    return found


def test_routing_errors_are_problems(client: TestClient[Any]) -> None:
    problem(client.get("/nowhere"), 404, "unknown-route")
    answer = client.delete("/v1/tokens")
    problem(answer, 405, "method-not-allowed")
    assert "GET" in answer.headers["allow"]


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer x", "Basic abc", "Bearer lm_0000_00", f"Bearer lm_{'0' * 26}_{'0' * 64}", "Bearer \u00e9"],
)
def test_missing_or_invalid_key_is_unauthenticated(client: TestClient[Any], authorization: str) -> None:
    answer = client.get("/v1/tokens?unknown=1", headers={"Authorization": authorization.encode("latin-1")})
    problem(answer, 401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_revoked_key_stops_at_once(world: World, client: TestClient[Any]) -> None:
    assert client.get("/v1/tokens", headers=world.headers("viewer")).status_code == 200
    with world.store.write() as session:
        access.revoke_key(session, world.tenant_id, world.principals["viewer"].key_id)
    problem(client.get("/v1/tokens", headers=world.headers("viewer")), 401, "unauthenticated")


def test_the_role_is_checked_before_the_body(world: World, client: TestClient[Any]) -> None:
    answer = client.post("/v1/tokens", headers=world.headers("viewer"), content=b"{")
    assert problem(answer, 403, "role-too-low")["requiredRole"] == "operator"


def test_repeated_parameter_is_refused(client: TestClient[Any]) -> None:
    found = problem(client.get("/v1/tokens?limit=5&limit=6"), 400, "repeated-parameter")
    assert found["errors"][0]["parameter"] == "limit"


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("type=", "type"),
        ("to=2026-01-01&from=2026-01-01", "to"),
        ("wallet=0x12", "wallet"),
        ("minAmount=-1", "minAmount"),
    ],
)
def test_invalid_parameters_are_named(client: TestClient[Any], query: str, parameter: str) -> None:
    found = problem(client.get(f"{TOKEN}/activities?{query}"), 422, "invalid-parameter")
    assert [error["parameter"] for error in found["errors"]] == [parameter]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("limit=ten", "limit"),
        ("limit=5.0", "limit"),
        ("from=yesterday", "from"),
        ("from=2026-02-30", "from"),
        ("from=2026-02-01T00:00:00+00:00", "from"),
        ("minAmount=1e3", "minAmount"),
        ("minAmount=NaN", "minAmount"),
    ],
)
def test_malformed_parameters_are_named(client: TestClient[Any], query: str, parameter: str) -> None:
    found = problem(client.get(f"{TOKEN}/activities?{query}"), 400, "malformed-parameter")
    assert [error["parameter"] for error in found["errors"]] == [parameter]


def test_boolean_parameter_accepts_only_true_and_false(client: TestClient[Any]) -> None:
    found = problem(client.get(f"{TOKEN}/cap-table?explain=maybe"), 400, "malformed-parameter")
    assert [error["parameter"] for error in found["errors"]] == ["explain"]
    for text in ("true", "TRUE", "1", "false", "0"):
        assert client.get(f"{TOKEN}/cap-table?explain={text}").status_code == 200


@pytest.mark.parametrize("moment", [f"block:{2**63}", "9999-12-31", "0001-01-01T00:00:00+14:00"])
def test_invalid_moments_are_refused(client: TestClient[Any], moment: str) -> None:
    problem(client.get(f"{TOKEN}/cap-table", params={"asOf": moment}), 422, "invalid-parameter")


@pytest.mark.parametrize("moment", ["block:", "block:-1", "block:1.5", "now", "2026-02-30"])
def test_malformed_moments_are_named(client: TestClient[Any], moment: str) -> None:
    found = problem(client.get(f"{TOKEN}/cap-table", params={"asOf": moment}), 400, "malformed-parameter")
    assert [error["parameter"] for error in found["errors"]] == ["asOf"]


@pytest.fixture
def recursion_limit() -> Iterator[None]:
    """Set the recursion limit of the service process: other tests' libraries raise it here."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize(
    ("body", "status", "code", "pointers"),
    [
        (b"", 400, "malformed-json", []),
        (b"{", 400, "malformed-json", []),
        (b"\xff", 400, "malformed-json", []),
        (b'{"ledger": "a", "ledger": "a"}', 400, "repeated-field", ["/ledger"]),
        (b'{"ledger": "a", "\\u006cedger": "b"}', 400, "repeated-field", ["/ledger"]),
        (b'{"ledger": {"a/b": [0, {"x": 1, "x": 2}]}}', 400, "repeated-field", ["/ledger/a~1b/1/x"]),
        (b'[{"ledger": 1}, {"ledger": 2, "symbol": 3, "symbol": 4}]', 400, "repeated-field", ["/1/symbol"]),
        (b'{"ledger": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400, "malformed-json", []),
        (b"[]", 422, "invalid-body", [""]),
        (b"{}", 422, "invalid-body", ["/ledger", "/symbol", "/ledgerId"]),
        (b'{"ledger": 5, "symbol": null, "ledgerId": true}', 422, "invalid-body", ["/ledger", "/symbol", "/ledgerId"]),
        (b'{"a/b": 1, "ledger": "x"}', 400, "unknown-field", ["/a~1b"]),
    ],
)
@pytest.mark.usefixtures("recursion_limit")
def test_faults_of_bodies_are_named(
    client: TestClient[Any], body: bytes, status: int, code: str, pointers: list[str]
) -> None:
    answer = client.post("/v1/tokens", content=body, headers={"Content-Type": "application/json"})
    assert [error["pointer"] for error in problem(answer, status, code)["errors"]] == pointers


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"ledgerId": "0x6b175474E89094C44Da98b954EedeAC495271d0F"}, "/ledgerId", "invalid-address"),
        ({"ledgerId": "native"}, "/ledgerId", "native-asset"),
        ({"ledgerId": "NATIVE"}, "/ledgerId", "native-asset"),
        ({"name": "a\u0000b"}, "/name", "control-character"),
    ],
)
def test_invalid_values_are_named_and_store_nothing(
    client: TestClient[Any], change: dict[str, str], pointer: str, code: str
) -> None:
    before = client.get("/v1/tokens").json()["data"]
    body = {"ledger": EXAMPLE_LEDGER, "symbol": "X", "ledgerId": "0x" + "9" * 40} | change
    found = problem(client.post("/v1/tokens", json=body), 422, "invalid-body")
    assert found["errors"] == [{"pointer": pointer, "code": code, "detail": found["errors"][0]["detail"]}]
    assert client.get("/v1/tokens").json()["data"] == before


def test_too_large_body_is_refused(client: TestClient[Any]) -> None:
    body = b'{"symbol": "' + b"x" * (1 << 20) + b'"}'
    answer = client.post("/v1/tokens", content=body, headers={"Content-Type": "application/json"})
    problem(answer, 413, "body-too-large")


def test_body_that_is_not_json_is_refused(client: TestClient[Any]) -> None:
    answer = client.post("/v1/tokens", content=b"a=b", headers={"Content-Type": "application/x-www-form-urlencoded"})
    problem(answer, 415, "unsupported-media-type")


@pytest.mark.parametrize(
    ("path", "accept"),
    [("/v1/tokens", "text/html"), (TOKEN, "text/csv"), ("/v1/tokens", "application/json;q=0")],
)
def test_unsupported_formats_are_refused(client: TestClient[Any], path: str, accept: str) -> None:
    problem(client.get(path, headers={"Accept": accept}), 406, "not-acceptable")


def test_requests_beyond_the_rate_limit_are_refused(world: World) -> None:
    with world.client(settings=replace(world.settings, rate_limit_per_minute=2)) as client:
        first = client.get("/v1/tokens")
        assert first.headers["ratelimit-policy"] == '"default";q=2;w=60'
        assert first.headers["ratelimit"].startswith('"default";r=1;t=')
        assert client.get("/v1/tokens").status_code == 200
        answer = client.get("/v1/tokens")
        problem(answer, 429, "rate-limited")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert client.get("/v1/tokens", headers=world.headers("viewer")).status_code == 200


def test_unexpected_error_reveals_nothing(
    world: World, client: TestClient[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr("control.subjects.get", fail)
    answer = client.get(TOKEN, headers={"X-Request-Id": "mine-1"})
    found = problem(answer, 500, "internal-error")
    assert found["requestId"] == "mine-1"
    assert "secret" not in answer.text
    assert "mine-1" in caplog.text
    assert "a secret of the inside" in caplog.text


def test_a_malformed_request_id_is_replaced(client: TestClient[Any]) -> None:
    answer = client.get("/nowhere", headers={"X-Request-Id": 'a"b c'})
    assert answer.headers["x-request-id"].startswith("req_")


def test_not_ready_without_a_version(world: World) -> None:
    for path in world.settings.serving_dir.iterdir():
        path.unlink()
    with world.client() as client:
        assert client.get("/health/live").json() == {"status": "live"}
        problem(client.get("/health/ready"), 503, "not-published")
        problem(client.get("/v1/tokens"), 503, "not-published")
        assert client.get("/v1/networks/ledgers").status_code == 200


def test_not_ready_without_a_control_store(world: World, tmp_path: Any) -> None:
    settings = replace(world.settings, control_url=f"sqlite:///{tmp_path}/none.db")
    with world.client(settings=settings) as client:
        problem(client.get("/health/ready"), 503, "control-store-unavailable")
        problem(client.get("/v1/tokens"), 503, "control-store-unavailable")


def test_database_error_appears_only_in_the_log(world: World, tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    urls = ("postgresql://nobody:secret@127.0.0.1:1/none", f"sqlite:///{tmp_path}/none/none.db")
    for url in urls:
        with world.client(settings=replace(world.settings, control_url=url)) as client:
            for path in ("/health/ready", "/v1/tokens", f"/embed/cap-table/emb_{'0' * 26}"):
                answer = client.get(path)
                assert answer.status_code == 503
                assert answer.json()["detail"] in (
                    "the control store cannot be used",
                    "the control store is missing or damaged",
                    "the control store is not migrated to this version; run `ledgermart init`",
                )
    assert "port 1 failed" in caplog.text
    assert "none.db is missing" in caplog.text
    assert "secret" not in caplog.text


def test_the_log_has_one_line_per_request_and_no_secret(
    world: World, client: TestClient[Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="ledgermart.access"):
        client.get(f"{TOKEN}?x=1", headers={"X-Request-Id": "r-7"})
        client.get("/nowhere")
    lines = [json.loads(record.message) for record in caplog.records if record.name == "ledgermart.access"]
    assert (lines[0]["route"], lines[0]["status"], lines[0]["requestId"]) == ("/v1/tokens/{tokenId}", 400, "r-7")
    assert lines[0]["keyId"] == world.principals["admin"].key_id
    assert lines[1]["status"] == 404
    assert world.keys["admin"] not in caplog.text
