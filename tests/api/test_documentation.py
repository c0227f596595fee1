"""The documentation page: only from this host, with a strict policy, over the served document."""

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.http import documentation
from tests.api.document import DOCUMENT
from tests.api.test_errors import problem


def test_the_document_is_served_without_a_key(client: TestClient[Any]) -> None:
    client.headers.pop("Authorization")
    answer = client.get("/openapi.json")
    assert answer.json() == DOCUMENT
    assert client.get("/openapi.json", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304


def test_page_loads_nothing_from_other_hosts(client: TestClient[Any]) -> None:
    client.headers.pop("Authorization")
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "http" not in page.headers["content-security-policy"]
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\son\w+=|https?://|//\w", page.text)
    references = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(references) == 5
    for reference in references:
        assert client.get(reference).status_code == 200, reference
    start = client.get("/docs/start.js").text
    assert 'url: "/openapi.json"' in start
    assert "https://" not in start
    # A style sheet with imports or a remote font would contact another host.
    assert not re.search(r"@import|url\((?!\"?data:)", client.get("/docs/swagger-ui.css").text)


def test_other_files_of_the_folder_are_not_served(client: TestClient[Any]) -> None:
    for name in ("index.html", "oauth2-redirect.html", "%2e%2e%2f__init__.py", "..%2f..%2f__init__.py"):
        problem(client.get(f"/docs/{name}"), 404, "unknown-route")


def test_the_document_begins_with_tokens_and_wallets() -> None:
    assert [section["name"] for section in DOCUMENT["tags"]][:2] == ["Tokens", "Wallets"]
    used = {
        tag for methods in DOCUMENT["paths"].values() for operation in methods.values() for tag in operation["tags"]
    }
    assert {section["name"] for section in DOCUMENT["tags"] if section["description"]} == used


def test_the_first_page_leads_to_the_others(client: TestClient[Any]) -> None:
    client.headers.pop("Authorization")
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert not re.search(r"<script|\son\w+=|\sstyle=|https?://|//\w", page.text)
    targets = {target.partition("#")[0] for target in re.findall(r'href="([^"]+)"', page.text)}
    assert targets >= {"/docs", "/openapi.json", "/health/live", "/health/ready"}
    for target in targets:
        assert client.get(target).status_code == 200, target
    (style,) = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page.headers["content-security-policy"]
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_bundle_is_read_once(client: TestClient[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = client.get("/docs/swagger-ui-bundle.js")
    monkeypatch.setattr(documentation, "SWAGGER_UI", tmp_path / "none")
    again = client.get("/docs/swagger-ui-bundle.js")
    assert (again.status_code, again.content, again.headers["etag"]) == (200, first.content, first.headers["etag"])
