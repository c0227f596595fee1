"""Attacks on embed tokens: only our own unexpired token opens a report, and only its own report and tenant."""

import base64
import hmac
import io
import json
import logging
import weakref
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import jwt
import pytest
from litestar.testing import TestClient

from api.errors import ApiError
from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.http.rate_limits import RateLimiter, address_key
from api.reports.schemas.links import Report
from api.reports.tokens import TokenSigner
from control import access, service_secrets, subjects, tokens, wallets
from control.access import Principal
from tests.api.document import DOCUMENT, check
from tests.api.test_errors import problem
from tests.api.test_reports import REPORTS, claims_of
from tests.api.world import World

# Routes that take an embed token in the header, with the reports of these tokens, from the document.
GUARDED = [
    pytest.param(method.upper(), path, operation, id=operation["operationId"])
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if operation["security"] == [{"embedToken": []}]
]


@pytest.fixture
def page(client: TestClient[Any]) -> TestClient[Any]:
    """A browser, which has no API key."""
    del client.headers["Authorization"]
    return client


def secret_of(world: World, name: str = service_secrets.EMBED_SIGNING_KEY) -> bytes:
    with world.store.read() as session:
        return service_secrets.get(session, name)


def token_for(world: World, client: TestClient[Any], report: str = "index", who: str = "viewer") -> str:
    """Return the token of a fresh link."""
    path, query = REPORTS[report]
    answer = client.get(path, params=query, headers=world.headers(who))
    return str(answer.json()["reportUrl"].partition("#t=")[2])


def read(token: str) -> dict[str, Any]:
    """Read a token's claims without verifying it."""
    return claims_of(f"#t={token}")


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def renew(client: TestClient[Any], token: str) -> Any:
    return client.post("/embed/token", headers=bearer(token))


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("report", get_args(Report))
def test_renewed_token_is_for_the_same_report(world: World, page: TestClient[Any], report: str) -> None:
    token = token_for(world, page, report)
    answer = renew(page, token)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    check({"$ref": "#/components/schemas/EmbedToken"}, answer.json())
    old, new = read(token), read(answer.json()["token"])
    changed = {name for name in old if old[name] != new[name]}
    assert changed - {"iat", "exp"} == {"jti"}
    assert new["exp"] - new["iat"] == 600
    assert datetime.fromisoformat(answer.json()["expiresAt"]) == datetime.fromtimestamp(new["exp"], UTC)
    assert datetime.fromisoformat(answer.json()["renewableUntil"]) == datetime.fromtimestamp(old["sxp"], UTC)
    assert renew(page, answer.json()["token"]).status_code == 200


def test_renewal_ends_with_the_session(world: World, page: TestClient[Any]) -> None:
    signer, embed_id = TokenSigner(secret_of(world)), read(token_for(world, page))["embed"]
    key_id = world.principals["viewer"].key_id
    now = datetime.now(UTC)

    def opened(ago: timedelta) -> tuple[str, Any]:
        first, claims = signer.open_session(world.tenant_id, "index", {}, embed_id, key_id, now - ago)
        return first, claims

    first, claims = opened(timedelta(minutes=11))
    problem(renew(page, first), 401, "token-expired")
    # After timely renewals, the last token ends with the session.
    _, claims = opened(timedelta(hours=7, minutes=55))
    late, _ = signer.go_on(claims, now)
    assert read(late)["exp"] == claims.sxp
    further = renew(page, late).json()
    assert read(further["token"])["exp"] == claims.sxp
    assert further["expiresAt"] == further["renewableUntil"]
    _, claims = opened(timedelta(hours=8))
    with pytest.raises(Exception, match="has expired"):
        signer.go_on(claims, now)


def forgeries(world: World, token: str) -> dict[str, str]:
    """Return forged tokens by their fault."""
    claims, secret = read(token), secret_of(world)
    head, body, signature = token.split(".")

    def signed(change: dict[str, Any], key: bytes = secret) -> str:
        kept = {name: value for name, value in (claims | change).items() if value is not None}
        return jwt.encode(kept, key)

    def by_hand(header: dict[str, Any], digest: str = "sha256") -> str:
        content = f"{part(header)}.{body}"
        made = hmac.digest(secret, content.encode(), digest)
        return f"{content}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"

    return {
        "no algorithm": f"{part({'alg': 'none', 'typ': 'JWT'})}.{body}.",
        "no algorithm, with signature": f"{part({'alg': 'none', 'typ': 'JWT'})}.{body}.{signature}",
        "another algorithm": by_hand({"alg": "HS512", "typ": "JWT"}, "sha512"),
        "an algorithm of another kind": by_hand({"alg": "RS256", "typ": "JWT"}),
        "no algorithm named": by_hand({"typ": "JWT"}),
        "critical extension": by_hand({"alg": "HS256", "typ": "JWT", "crit": ["exp"]}),
        "other claims under the signature": f"{head}.{part(claims | {'tenant': world.foreign_tenant_id})}.{signature}",
        "another secret": signed({}, key=b"x" * 32),
        "the key of cursors": signed({}, key=secret_of(world, service_secrets.CURSOR_KEY)),
        "the key of Superset's guests": signed({}, key=secret_of(world, service_secrets.SUPERSET_GUEST_KEY)),
        "another audience": signed({"aud": "superset"}),
        "several audiences": signed({"aud": ["ledgermart-embed", "other"]}),
        "an unknown report": signed({"report": "everything"}),
        "an unknown claim": signed({"role": "admin"}),
        "parameters of another type": signed({"params": {"tokenId": 5}}),
        "time as text": signed({"sxp": "never"}),
        "not yet": signed({"nbf": int(datetime.now(UTC).timestamp()) + 600}),
        "endless": "a" * 5000,
        "cut": token[:-1],
        "without signature": f"{head}.{body}.",
        "two parts": f"{head}.{body}",
        "not a token": "lm_x",
        **{f"without {name}": signed({name: None}) for name in claims},
    }


def test_no_forgery_opens_anything(world: World, page: TestClient[Any]) -> None:
    token = token_for(world, page)
    made = forgeries(world, token)
    assert len(made) == 32
    for what, forged in made.items():
        answer = renew(page, forged)
        assert (answer.status_code, answer.json()["code"]) == (401, "token-invalid"), what
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    expired = jwt.encode(read(token) | {"exp": 1_700_000_000}, secret_of(world))
    problem(renew(page, expired), 401, "token-expired")
    for header in ({}, {"Authorization": "Bearer"}, {"Authorization": f"Basic {token}"}, {"Cookie": f"token={token}"}):
        problem(page.post("/embed/token", headers=header), 401, "unauthenticated")
    assert page.post("/embed/token", params={"token": token}).status_code == 401
    assert renew(page, token).status_code == 200


@pytest.mark.proof("a report refuses every other token")
@pytest.mark.parametrize(("method", "path", "operation"), GUARDED)
def test_every_embed_route_refuses_bad_tokens(
    world: World, page: TestClient[Any], method: str, path: str, operation: dict[str, Any]
) -> None:
    assert path.startswith("/embed/")

    def ask(headers: dict[str, str], query: str = "") -> Any:
        return page.request(method, f"{path}{query}", headers=headers, json={"type": "cap-table", "id": "x"})

    tokens_by_report = {name: token_for(world, page, name) for name in get_args(Report)}
    taken = {name for name in tokens_by_report if f"`{name}`" in operation["description"]}
    assert taken
    problem(ask({}), 401, "unauthenticated")
    problem(ask(world.headers("admin")), 401, "token-invalid")
    for name, token in tokens_by_report.items():
        if name in taken:
            problem(ask(bearer(token), "?tenant=x"), 400, "unknown-parameter")
            problem(ask(bearer(token), "?params=x&report=index"), 400, "unknown-parameter")
        else:
            problem(ask(bearer(token)), 403, "wrong-report")
    token = tokens_by_report[sorted(taken)[0]]
    expired = jwt.encode(read(token) | {"exp": 1_700_000_000}, secret_of(world))
    problem(ask(bearer(expired)), 401, "token-expired")
    page.post("/v1/reports/revocations", headers=world.headers("admin"))
    problem(ask(bearer(token)), 401, "token-revoked")


def test_embed_token_is_not_accepted_as_api_key(world: World, page: TestClient[Any]) -> None:
    headers = bearer(token_for(world, page, who="admin"))
    for method, path in (("GET", "/v1/tokens"), ("GET", "/v1/reports"), ("POST", "/v1/reports/revocations")):
        problem(page.request(method, path, headers=headers), 401, "unauthenticated")


def test_revocation_takes_effect_at_once_and_only_for_that_tenant(world: World, page: TestClient[Any]) -> None:
    token, theirs = token_for(world, page), token_for(world, page, who="foreign")
    embed_id = read(token)["embed"]
    renewed = renew(page, token).json()["token"]
    assert page.post("/v1/reports/revocations", headers=world.headers("admin")).status_code == 201
    for stopped in (token, renewed):
        problem(renew(page, stopped), 401, "token-revoked")
    assert renew(page, theirs).status_code == 200
    fresh = token_for(world, page)
    assert read(fresh)["embed"] != embed_id
    assert renew(page, fresh).status_code == 200


@pytest.mark.parametrize("report", get_args(Report))
def test_revoked_key_ends_only_its_own_sessions(world: World, page: TestClient[Any], report: str) -> None:
    token, kept = token_for(world, page, report), token_for(world, page, report, who="operator")
    assert read(token)["key"] == world.principals["viewer"].key_id
    renewed = renew(page, token).json()["token"]
    taken = [token, renewed]
    if report == "index":
        asked = {"type": "cap-table", "id": EXAMPLE_TOKEN_ID}
        link = page.post("/embed/index-links", json=asked, headers=bearer(token)).json()["reportUrl"]
        taken.append(str(link.partition("#t=")[2]))
    with world.store.write() as session:
        access.revoke_key(session, world.tenant_id, world.principals["viewer"].key_id)
    for stopped in taken:
        problem(renew(page, stopped), 401, "token-revoked")
    data = sorted(path for path in DOCUMENT["paths"] if path.startswith(f"/embed/data/{report}"))
    assert data
    for path in data:
        problem(page.get(path, headers=bearer(token)), 401, "token-revoked")
    if report != "index":
        problem(page.post("/embed/superset-token", headers=bearer(token)), 401, "token-revoked")
        problem(page.post(f"/embed/data/{report}/csv", data={"token": token}), 401, "token-revoked")
    assert renew(page, kept).status_code == 200


def test_token_with_key_of_another_tenant_is_refused(world: World, page: TestClient[Any]) -> None:
    ours = read(token_for(world, page))
    for key_id in (world.principals["foreign"].key_id, "key_x", ""):
        problem(renew(page, jwt.encode(ours | {"key": key_id}, secret_of(world))), 401, "token-revoked")


def test_token_with_embed_id_of_another_tenant_is_refused(world: World, page: TestClient[Any]) -> None:
    """A valid signature does not help: a token's tenant and embed id must match."""
    ours, theirs = read(token_for(world, page)), read(token_for(world, page, who="foreign"))
    for mixed in (ours | {"embed": theirs["embed"]}, ours | {"tenant": theirs["tenant"]}, ours | {"tenant": "ten_x"}):
        problem(renew(page, jwt.encode(mixed, secret_of(world))), 401, "token-revoked")


@pytest.mark.parametrize("report", ["cap-table", "cap-table-changes", "wallet-activity"])
def test_token_of_a_removed_subject_cannot_be_renewed(world: World, page: TestClient[Any], report: str) -> None:
    token = token_for(world, page, report)
    kind, rules, subject_id = (
        ("wallet", wallets, EXAMPLE_WALLET_ID) if report == "wallet-activity" else ("token", tokens, EXAMPLE_TOKEN_ID)
    )
    admin: Principal = world.principals["admin"]
    with world.store.write() as session:
        subjects.remove(session, admin, rules.get(session, world.tenant_id, subject_id))
    problem(renew(page, token), 404, f"{kind}-not-found")


def test_index_links_only_to_own_reports_within_its_session(world: World, page: TestClient[Any]) -> None:
    token = token_for(world, page)

    def link(kind: str, subject_id: str) -> Any:
        return page.post("/embed/index-links", json={"type": kind, "id": subject_id}, headers=bearer(token))

    for kind, name, subject_id in (
        ("cap-table", "tokenId", EXAMPLE_TOKEN_ID),
        ("wallet-activity", "walletId", EXAMPLE_WALLET_ID),
    ):
        answer = link(kind, subject_id)
        assert answer.status_code == 200, answer.text
        made, index = claims_of(answer.json()["reportUrl"]), read(token)
        assert (made["report"], made["params"]) == (kind, {name: subject_id})
        assert [made[claim] for claim in ("tenant", "embed", "sxp")] == [
            index[claim] for claim in ("tenant", "embed", "sxp")
        ]
        assert renew(page, answer.json()["reportUrl"].partition("#t=")[2]).status_code == 200
    problem(link("wallet-activity", EXAMPLE_TOKEN_ID), 404, "wallet-not-found")
    problem(link("index", "x"), 422, "invalid-body")
    found = problem(link("cap-table-changes", EXAMPLE_TOKEN_ID), 422, "invalid-body")
    assert [error["pointer"] for error in found["errors"]] == ["/from"]
    asked = {"type": "cap-table-changes", "id": EXAMPLE_TOKEN_ID, "from": "last-month-end"}
    made = claims_of(page.post("/embed/index-links", json=asked, headers=bearer(token)).json()["reportUrl"])
    assert (made["report"], made["params"]) == (
        "cap-table-changes",
        {"tokenId": EXAMPLE_TOKEN_ID, "from": "last-month-end"},
    )
    answer = page.post("/embed/index-links", content=b"{}", headers=bearer(token_for(world, page, "cap-table")))
    problem(answer, 403, "wrong-report")


def test_rate_limit_is_per_tenant(world: World) -> None:
    with world.client(settings=replace(world.settings, rate_limit_per_minute=2)) as client:
        first, second = token_for(world, client), token_for(world, client)
        theirs = token_for(world, client, who="foreign")
        assert renew(client, first).headers["ratelimit"].startswith('"default";r=1;t=')
        assert renew(client, second).headers["ratelimit-policy"] == '"default";q=2;w=60'
        for token in (first, second):
            answer = renew(client, token)
            problem(answer, 429, "rate-limited")
            assert 1 <= int(answer.headers["retry-after"]) <= 60
        # Forged tokens and tokens of other tenants do not count against the tenant's rate.
        problem(renew(client, "x"), 401, "token-invalid")
        assert renew(client, theirs).status_code == 200


def test_logs_contain_no_token(world: World, page: TestClient[Any]) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.addFilter(lambda record: record.name != "httpx")  # the tests' own client
    root = logging.getLogger()
    access = logging.getLogger("ledgermart.access")
    before = access.level
    for logger in (root, access):
        logger.addHandler(handler)
    access.setLevel(logging.DEBUG)
    try:
        token = token_for(world, page)
        embed_id = read(token)["embed"]
        page.get("/v1/reports", headers=world.headers("viewer", Accept="text/html"), follow_redirects=False)
        page.get(f"/embed/index/{embed_id}?theme=auto")
        further = renew(page, token).json()["token"]
        page.post("/embed/token", params={"token": token}, headers=bearer(token))
        page.post("/embed/index-links", json={"type": "cap-table", "id": EXAMPLE_TOKEN_ID}, headers=bearer(further))
        renew(page, token[:-2])
        page.get("/embed/token/" + token)
    finally:
        for logger in (root, access):
            logger.removeHandler(handler)
        access.setLevel(before)
    logged = written.getvalue()
    assert logged.count("/embed/token") >= 3
    assert "/embed/index/{embed_id}" in logged
    for secret in (token, further):
        for piece in secret.split(".")[1:]:
            assert piece not in logged


@pytest.mark.parametrize("report", ["cap-table", "cap-table-changes", "wallet-activity"])
def test_form_without_a_token_is_refused_early(page: TestClient[Any], report: str) -> None:
    path, kind = f"/embed/data/{report}/csv", {"Content-Type": "application/x-www-form-urlencoded"}
    many = b"a&" * 8_000
    problem(page.post(path, content=many, headers=kind), 400, "too-many-fields")
    for large in (b"a&" * 500_000, b"token=" + b"x" * 16_384):
        problem(page.post(path, content=large, headers=kind), 413, "body-too-large")
    problem(page.post(path, content=b"token=" + b"x" * 16_000, headers=kind), 401, "token-invalid")


def test_forms_are_rate_limited_by_address_before_token_check(world: World) -> None:
    path = "/embed/data/cap-table/csv"
    with world.client(settings=replace(world.settings, rate_limit_per_minute=3)) as client:
        token = token_for(world, client, "cap-table")
        for _ in range(3):
            problem(client.post(path, data={"token": "x"}), 401, "token-invalid")
        refused = client.post(path, data={"token": token})
        problem(refused, 429, "rate-limited")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        # Requests with the token in the header count only against the tenant's rate.
        assert client.get(path, headers=bearer(token)).status_code == 200


class _Key(str):
    """A key with weak references, which show whether it is in memory."""


def test_rate_limiter_groups_addresses_by_network_and_forgets_them() -> None:
    now = 0.0
    limiter = RateLimiter(2, lambda: now)
    admitted: list[weakref.ref[_Key]] = []

    def admit(host: str) -> None:
        key = _Key(address_key(host))
        admitted.append(weakref.ref(key))
        limiter.admit(key)

    def in_memory() -> int:
        return sum(key() is not None for key in admitted)

    for number in range(1000):
        admit(f"10.0.{number // 250}.{number % 250}")
    for host in ("2001:db8::1", "2001:db8::ffff:2"):
        admit(host)
    with pytest.raises(ApiError):
        limiter.admit(address_key("2001:db8::3"))
    admit("2001:db8:0:1::3")
    assert in_memory() == 1002
    assert {address_key(None), address_key("testclient")} == {"address None", "address testclient"}
    now = 61.0
    admit("2001:db8::3")
    assert in_memory() == 1
