"""Report links, their pages and static files; `test_embedding` has the attacks."""

import gzip
import html.parser
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from control.models import Subject
from tests.api.document import OPERATIONS, ask
from tests.api.test_errors import problem
from tests.api.world import NFT_TOKEN_ID, World, copy_world

REPORTS = {
    "index": ("/v1/reports", {}),
    "cap-table": ("/v1/reports/cap-table", {"tokenId": EXAMPLE_TOKEN_ID}),
    "cap-table-changes": ("/v1/reports/cap-table-changes", {"tokenId": EXAMPLE_TOKEN_ID, "from": "block:260"}),
    "wallet-activity": ("/v1/reports/wallet-activity", {"walletId": EXAMPLE_WALLET_ID}),
}
SCRIPT = b"console.log('the page');" * 50


@pytest.fixture(scope="module", autouse=True)
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small, known build of the pages."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "assets").mkdir()
    for page in (*REPORTS, "superset", "error"):
        (folder / f"{page}.html").write_text(f"<!doctype html><title>{page}</title>")
    for name, content in {
        "page-0a1b2c3d.js": SCRIPT,
        "page-0a1b2c3d.js.gz": gzip.compress(SCRIPT),
        "page-0a1b2c3d.js.br": b"as small as brotli makes it",
        "page-0a1b2c3d.css": b"body{}",
        "LICENSES.txt": b"licences",
    }.items():
        (folder / "assets" / name).write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("api.reports.assets.FOLDER", folder)
        yield folder


@pytest.fixture(scope="module")
def shared(template: World, tmp_path_factory: pytest.TempPathFactory, built: Path) -> Iterator[TestClient[Any]]:
    """A client shared by the tests that change no configuration."""
    world = copy_world(template, tmp_path_factory.mktemp("shared"))
    with world.client() as client:
        yield client
    world.store.close()


class Frame(html.parser.HTMLParser):
    """Parser of the `iframe` in a response."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def claims_of(url: str) -> dict[str, Any]:
    """Read the claims of a link's token without verifying it."""
    found: dict[str, Any] = jwt.decode(url.partition("#t=")[2], options={"verify_signature": False})
    return found


@pytest.mark.parametrize("report", REPORTS)
def test_link_has_everything_for_an_iframe(world: World, client: TestClient[Any], report: str) -> None:
    path, query = REPORTS[report]
    before = datetime.now(UTC).replace(microsecond=0)
    answer = client.get(path, params=query, headers=world.headers("viewer"))
    after = datetime.now(UTC)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers
    link = answer.json()
    assert list(link) == ["type", "provider", "reportUrl", "expiresAt", "iframe"]
    assert (link["type"], link["provider"]) == (report, "builtin")

    url = urlsplit(link["reportUrl"])
    claims = claims_of(link["reportUrl"])
    assert f"{url.scheme}://{url.netloc}" == "http://127.0.0.1:8000"
    assert url.path == f"/embed/{report}/{claims['embed']}"
    assert url.query == "theme=auto"
    assert claims["tenant"] == world.tenant_id
    assert (claims["aud"], claims["report"], claims["params"]) == ("ledgermart-embed", report, query)
    assert before <= datetime.fromtimestamp(claims["iat"], UTC) <= after
    assert claims["exp"] - claims["iat"] == 600
    assert claims["sxp"] - claims["iat"] == 8 * 3600
    assert datetime.fromisoformat(link["expiresAt"]) == datetime.fromtimestamp(claims["exp"], UTC)

    [(script, _), (tag, attributes)] = Frame(link["iframe"]).elements
    assert (script, tag) == ("script", "iframe")
    assert attributes["src"] == link["reportUrl"]
    assert attributes["title"]
    assert str(attributes["sandbox"]).split() == [
        f"allow-{what}"
        for what in (
            "scripts",
            "same-origin",
            "downloads",
            "forms",
            "modals",
            "popups",
            "popups-to-escape-sandbox",
        )
    ]
    assert attributes["referrerpolicy"] == "no-referrer"
    # No inline style: the policy of the surrounding site may forbid it.
    assert (attributes["frameborder"], attributes["width"]) == ("0", "100%")
    assert "style" not in attributes


@pytest.mark.parametrize("report", REPORTS)
def test_every_link_has_its_own_token_and_the_tenants_embed_id(shared: TestClient[Any], report: str) -> None:
    path, query = REPORTS[report]
    first, second = (claims_of(shared.get(path, params=query).json()["reportUrl"]) for _ in range(2))
    assert first["embed"] == second["embed"]
    assert first["jti"] != second["jti"]


def test_parameters_appear_only_in_the_token(shared: TestClient[Any]) -> None:
    query = {"tokenId": EXAMPLE_TOKEN_ID, "asOf": "block:150", "theme": "dark"}
    url = shared.get("/v1/reports/cap-table", params=query).json()["reportUrl"]
    assert claims_of(url)["params"] == {"tokenId": EXAMPLE_TOKEN_ID, "asOf": "block:150"}
    assert parse_qs(urlsplit(url).query) == {"theme": ["dark"]}
    query = {"walletId": EXAMPLE_WALLET_ID, "from": "2026-02-01", "to": "2026-02-01T12:00:00Z"}
    url = shared.get("/v1/reports/wallet-activity", params=query).json()["reportUrl"]
    assert claims_of(url)["params"] == query


def test_html_request_is_redirected_to_the_report(shared: TestClient[Any]) -> None:
    for accept in ("text/html", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"):
        answer = shared.get(
            "/v1/reports/cap-table",
            params={"tokenId": EXAMPLE_TOKEN_ID},
            headers={"Accept": accept},
            follow_redirects=False,
        )
        assert answer.status_code == 303
        assert answer.content == b""
        assert answer.headers["cache-control"] == "no-store"
        assert claims_of(answer.headers["location"])["params"] == {"tokenId": EXAMPLE_TOKEN_ID}
    problem(shared.get("/v1/reports", headers={"Accept": "text/csv"}), 406, "not-acceptable")


@pytest.mark.parametrize(
    ("path", "status", "code", "parameter"),
    [
        ("/cap-table", 422, "invalid-parameter", "tokenId"),
        ("/cap-table?tokenId=", 422, "invalid-parameter", "tokenId"),
        (f"/cap-table?tokenId={EXAMPLE_TOKEN_ID}&asOf=now", 400, "malformed-parameter", "asOf"),
        (f"/cap-table-changes?tokenId={EXAMPLE_TOKEN_ID}", 422, "invalid-parameter", "from"),
        (f"/cap-table-changes?tokenId={EXAMPLE_TOKEN_ID}&from=today", 422, "invalid-parameter", "from"),
        (f"/cap-table-changes?tokenId={EXAMPLE_TOKEN_ID}&from=block:1&to=soon", 400, "malformed-parameter", "to"),
        ("/wallet-activity", 422, "invalid-parameter", "walletId"),
        (f"/wallet-activity?walletId={EXAMPLE_WALLET_ID}&from=soon", 400, "malformed-parameter", "from"),
        (f"/wallet-activity?walletId={EXAMPLE_WALLET_ID}&to=block:5", 400, "malformed-parameter", "to"),
        (
            f"/wallet-activity?walletId={EXAMPLE_WALLET_ID}&from=2026-01-02&to=2026-01-02",
            422,
            "invalid-parameter",
            "to",
        ),
    ],
)
def test_invalid_parameters_are_named(
    shared: TestClient[Any], path: str, status: int, code: str, parameter: str
) -> None:
    found = problem(shared.get(f"/v1/reports{path}"), status, code)
    assert [error["parameter"] for error in found["errors"]] == [parameter]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"/cap-table?tokenId={EXAMPLE_WALLET_ID}", "token-not-found"),
        ("/cap-table?tokenId=%27%20or%201=1", "token-not-found"),
        (f"/wallet-activity?walletId={EXAMPLE_TOKEN_ID}", "wallet-not-found"),
    ],
)
def test_links_exist_only_for_own_subjects(shared: TestClient[Any], path: str, code: str) -> None:
    problem(shared.get(f"/v1/reports{path}"), 404, code)


def test_tracking_need_not_be_enabled(shared: TestClient[Any]) -> None:
    assert shared.get("/v1/reports/cap-table", params={"tokenId": NFT_TOKEN_ID}).status_code == 200


def test_a_name_cannot_break_out_of_the_iframe(world: World, client: TestClient[Any]) -> None:
    name = "\"><script>alert(1)</script>' & co"
    with world.store.write() as session:
        session.get_one(Subject, world.subject_keys[EXAMPLE_TOKEN_ID]).symbol = name
        session.get_one(Subject, world.subject_keys[EXAMPLE_WALLET_ID]).name = name
    for path, query in (REPORTS[report] for report in REPORTS if report != "index"):
        [(script, _), (tag, attributes)] = Frame(client.get(path, params=query).json()["iframe"]).elements
        assert (script, tag) == ("script", "iframe")
        assert str(attributes["title"]).endswith(name)


def test_links_start_with_the_public_url(world: World) -> None:
    with world.client(settings=replace(world.settings, public_url="https://api.example")) as client:
        assert client.get("/v1/reports").json()["reportUrl"].startswith("https://api.example/embed/index/emb_")


def test_superset_serves_only_reports_with_a_dashboard(world: World) -> None:
    settings = replace(world.settings, reports_provider="superset", superset_url="https://bi.example")
    with world.client(settings=settings) as client:
        for report, (path, query) in REPORTS.items():
            link = client.get(path, params=query).json()
            page = client.get(urlsplit(link["reportUrl"]).path)
            policy = policy_of(page)
            if report in ("index", "cap-table-changes"):
                assert (link["provider"], policy["frame-src"]) == ("builtin", "'self'")
                assert f"<title>{report}</title>" in page.text
            else:
                assert (link["provider"], policy["frame-src"]) == ("superset", "https://bi.example")
                assert "<title>superset</title>" in page.text
        found = problem(
            client.get("/v1/reports/cap-table", params={"tokenId": EXAMPLE_TOKEN_ID, "asOf": "block:150"}),
            422,
            "invalid-parameter",
        )
        assert found["errors"][0]["parameter"] == "asOf"


def policy_of(answer: Any) -> dict[str, str]:
    """Read a Content-Security-Policy."""
    parts = (part.strip().partition(" ") for part in answer.headers["content-security-policy"].split(";"))
    return {name: value for name, _, value in parts}


@pytest.mark.parametrize("report", REPORTS)
def test_page_can_be_framed_only_by_the_tenants_sites(world: World, client: TestClient[Any], report: str) -> None:
    origins = ["https://portal.example", "http://127.0.0.1:5000"]
    path, query = REPORTS[report]
    page_path = urlsplit(client.get(path, params=query).json()["reportUrl"]).path
    foreign_path = urlsplit(client.get("/v1/reports", headers=world.headers("foreign")).json()["reportUrl"]).path
    del client.headers["Authorization"]

    alone = client.get(page_path)
    assert policy_of(alone)["frame-ancestors"] == "'self'"
    answer = client.put("/v1/reports/embed-origins", json={"embedOrigins": origins}, headers=world.headers())
    assert answer.json() == {"embedOrigins": origins}
    answer = client.get("/v1/reports/embed-origins", headers=world.headers())
    assert answer.json() == {"embedOrigins": origins}

    page = client.get(page_path)
    assert page.status_code == 200
    assert policy_of(page) == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "font-src": "'self'",
        "form-action": "'self'",
        "frame-src": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'self' https://portal.example http://127.0.0.1:5000",
    }
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "x-frame-options" not in page.headers
    assert f"<title>{report}</title>" in page.text
    assert policy_of(client.get(foreign_path))["frame-ancestors"] == "'self'"
    head = client.head(page_path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-security-policy"] == page.headers["content-security-policy"]


@pytest.mark.parametrize("embed_id", ["emb_" + "0" * 26, "x", "%00", "emb_"])
def test_unknown_embed_id_is_a_404_page_that_cannot_be_framed(shared: TestClient[Any], embed_id: str) -> None:
    shared.get("/v1/reports")
    answer = shared.get(f"/embed/cap-table/{embed_id}")
    assert answer.status_code == 404
    assert "<title>error</title>" in answer.text
    assert policy_of(answer)["frame-ancestors"] == "'none'"
    assert answer.headers["x-frame-options"] == "DENY"


def test_other_paths_are_problems(shared: TestClient[Any]) -> None:
    embed_id = claims_of(shared.get("/v1/reports").json()["reportUrl"])["embed"]
    for path in (
        "/embed",
        "/embed/",
        f"/embed/superset/{embed_id}",
        f"/embed/error/{embed_id}",
        "/embed/cap-table",
        "/embed/cap-table/..%2F..%2Fetc",
    ):
        problem(shared.get(path), 404, "unknown-route")
    problem(shared.post(f"/embed/cap-table/{embed_id}"), 405, "method-not-allowed")


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        (None, "identity"),
        ("", "identity"),
        ("identity", "identity"),
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "br"),
        ("br;q=0.5, gzip;q=0.8", "gzip"),
        ("br;q=0, gzip;q=0", "identity"),
        ("br;q=2", "identity"),
        ("*", "br"),
        ("*;q=0.1, identity", "identity"),
        ("GZIP", "gzip"),
    ],
)
def test_files_are_compressed_as_the_client_accepts(shared: TestClient[Any], accepted: str | None, coding: str) -> None:
    request = shared.build_request("GET", "/embed/assets/page-0a1b2c3d.js")
    for name in ("Authorization", "Accept-Encoding"):
        del request.headers[name]
    if accepted is not None:
        request.headers["Accept-Encoding"] = accepted
    answer = shared.send(request, stream=True)
    sent = b"".join(answer.iter_raw())
    expected = {"identity": SCRIPT, "gzip": gzip.compress(SCRIPT), "br": b"as small as brotli makes it"}
    assert answer.headers.get("content-encoding", "identity") == coding
    assert gzip.decompress(sent) == SCRIPT if coding == "gzip" else sent == expected[coding]
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert int(answer.headers["content-length"]) == len(sent)


def test_client_that_accepts_no_encoding_gets_406(shared: TestClient[Any]) -> None:
    answer = shared.get("/embed/assets/page-0a1b2c3d.js", headers={"Accept-Encoding": "identity;q=0, deflate"})
    problem(answer, 406, "not-acceptable")


def test_unchanged_file_returns_304(shared: TestClient[Any]) -> None:
    path = "/embed/assets/page-0a1b2c3d.js"
    first = shared.get(path, headers={"Accept-Encoding": "gzip"})
    again = {"Accept-Encoding": "gzip", "If-None-Match": first.headers["etag"]}
    answer = shared.get(path, headers=again)
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["etag"] == first.headers["etag"]
    assert shared.get(path, headers=again | {"Accept-Encoding": "identity"}).status_code == 200
    head = shared.head(path, headers={"Accept-Encoding": "gzip"})
    assert (head.status_code, head.headers["content-encoding"], head.content) == (200, "gzip", b"")


def test_file_without_a_hash_in_its_name_is_revalidated(shared: TestClient[Any]) -> None:
    answer = shared.get("/embed/assets/LICENSES.txt")
    assert answer.text == "licences"
    assert answer.headers["cache-control"] == "public, no-cache"
    assert shared.get("/embed/assets/page-0a1b2c3d.css").headers["content-type"] == "text/css; charset=utf-8"


@pytest.mark.parametrize(
    "name",
    ["cap-table.html", "page-0a1b2c3d.js.gz", "page-0a1b2c3d.js.br", "..%2Fcap-table.html", "..%5Cerror.html",
     "%2e%2e%2f%2e%2e%2fcontrol.db", "%00", "", "page-00000000.js"],
)  # fmt: skip
def test_other_files_are_not_served(shared: TestClient[Any], name: str) -> None:
    problem(shared.get(f"/embed/assets/{name}"), 404, "unknown-route")


def test_pages_without_a_build_name_the_command_to_run(
    world: World, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "built"))
    kept = (folder / "error.html").read_bytes()
    (folder / "error.html").unlink()
    monkeypatch.setattr("api.reports.assets.FOLDER", folder)
    with world.client() as client:
        path = urlsplit(client.get("/v1/reports").json()["reportUrl"]).path
        assert "make install" in problem(client.get(path), 503, "reports-not-built")["detail"]
        problem(client.get("/embed/assets/page-0a1b2c3d.js"), 503, "reports-not-built")
        (folder / "error.html").write_bytes(kept)
        assert client.get(path).status_code == 200


def test_invalid_origins_are_named(client: TestClient[Any]) -> None:
    body = {"embedOrigins": ["https://fine.example", "https://*", "https://a.example\r\nX: y"]}
    found = problem(client.put("/v1/reports/embed-origins", json=body), 422, "invalid-body")
    assert [error["pointer"] for error in found["errors"]] == ["/embedOrigins/1", "/embedOrigins/2"]
    assert client.get("/v1/reports/embed-origins").json() == {"embedOrigins": []}
    for wrong in ({"embedOrigins": "https://a.example"}, {}, {"embedOrigins": [1]}):
        problem(client.put("/v1/reports/embed-origins", json=wrong), 422, "invalid-body")
    problem(client.put("/v1/reports/embed-origins", json={"embedOrigin": []}), 400, "unknown-field")


def test_embedding_changes_are_audited(world: World, client: TestClient[Any]) -> None:
    client.put("/v1/reports/embed-origins", json={"embedOrigins": ["https://portal.example"]})
    client.post("/v1/reports/revocations")
    events = client.get("/v1/audit-events", params={"objectId": world.tenant_id}).json()["data"]
    assert [event["action"] for event in events] == ["embedding.revoke", "embedding.origins"]
    assert events[1]["after"] == {"embedOrigins": ["https://portal.example"]}
    assert events[0]["before"]["embedId"] != events[0]["after"]["embedId"]


def test_links_count_against_the_rate_limit_of_the_key(world: World) -> None:
    with world.client(settings=replace(world.settings, rate_limit_per_minute=1)) as client:
        assert client.get("/v1/reports").headers["ratelimit"].startswith('"default";r=0')
        problem(client.get("/v1/reports"), 429, "rate-limited")


@pytest.fixture
def answers(client: TestClient[Any]) -> list[Any]:
    """Return a response of every route, from the examples of the document."""
    found = [ask(client, *param.values, {}) for param in OPERATIONS]
    embed_id = claims_of(client.get("/v1/reports").json()["reportUrl"])["embed"]
    more = (f"/embed/index/{embed_id}", "/embed/assets/LICENSES.txt", "/docs", "/openapi.json", "/nowhere")
    return [*found, *(client.get(path) for path in more)]


def test_no_route_sets_a_cookie_and_only_pages_can_be_framed(answers: list[Any]) -> None:
    assert len(answers) > 60
    for answer in answers:
        path = answer.request.url.path
        assert "set-cookie" not in answer.headers, path
        if path.startswith("/embed/index/emb_"):
            continue
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"], path
        assert answer.headers["x-frame-options"] == "DENY", path


def test_page_session_lasts_eight_hours() -> None:
    from api.reports.tokens import LIFE, SESSION

    assert (timedelta(minutes=10), timedelta(hours=8)) == (LIFE, SESSION)
