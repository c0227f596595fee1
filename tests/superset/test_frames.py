"""Origins that may frame Superset's pages, and sources from which the pages may load."""

import time

import httpx
import jwt
import pytest

from api.reports.superset import FRAME_AUDIENCE
from tests.superset.service import Superset

pytestmark = pytest.mark.release

SITE = "https://portal.example"


def directives(answer: httpx.Response) -> dict[str, str]:
    """Return the Content-Security-Policy, of which there is one."""
    [policy] = answer.headers.get_list("content-security-policy")
    parts = [part.strip().partition(" ") for part in policy.split(";")]
    return {name: value for name, _, value in parts}


def embedded(superset: Superset, frame: str | None, referer: str | None = None) -> httpx.Response:
    """Ask for a dashboard's page as a browser does for a frame."""
    address = f"{superset.url}/embedded/{superset.provisioned('cap-table')['embeddedId']}"
    around = superset.world.settings.public_origin + "/" if referer is None else referer
    return httpx.get(address, params={"frame": frame} if frame else {}, headers={"Referer": around} if around else {})


def test_origins_of_the_grant_may_frame_a_dashboard(superset: Superset) -> None:
    ours = superset.world.settings.public_origin
    answer = embedded(superset, superset.frame(ours, SITE))
    assert answer.status_code == 200
    assert directives(answer)["frame-ancestors"] == f"{ours} {SITE}"
    assert "x-frame-options" not in answer.headers


@pytest.mark.parametrize("grant", ["none", "expired", "forged", "a guest's", "twice", "unsigned"])
def test_without_a_valid_grant_framing_is_refused(superset: Superset, grant: str) -> None:
    claims = {"aud": FRAME_AUDIENCE, "origins": [SITE], "exp": int(time.time()) + 60}
    frames = {
        "none": None,
        "expired": jwt.encode(claims | {"exp": 1}, superset.key, algorithm="HS256"),
        "forged": jwt.encode(claims, "k" * 64, algorithm="HS256"),
        "a guest's": jwt.encode(superset.claims(superset.world.tenant_id), superset.key, algorithm="HS256"),
        "twice": superset.frame(SITE) + "&frame=" + superset.frame("https://evil.example"),
        "unsigned": jwt.encode(claims, "", algorithm="none"),
    }
    assert directives(embedded(superset, frames[grant]))["frame-ancestors"] == "'none'"


def test_dashboards_are_embedded_in_our_pages_alone(superset: Superset) -> None:
    frame = superset.frame(SITE)
    assert embedded(superset, frame, referer=f"{SITE}/report").status_code == 403
    assert embedded(superset, frame, referer="").status_code == 403


@pytest.mark.parametrize("path", ["/login/", "/health", "/superset/welcome/", "/api/v1/dashboard/1", "/nothing"])
def test_nothing_else_is_ever_framed(superset: Superset, path: str) -> None:
    answer = httpx.get(superset.url + path, params={"frame": superset.frame(SITE)})
    assert directives(answer)["frame-ancestors"] == "'none'"


def test_pages_load_from_superset_alone(superset: Superset) -> None:
    answer = embedded(superset, superset.frame(SITE))
    policy = directives(answer)
    assert policy.pop("frame-ancestors") == SITE
    assert policy["default-src"] == "'none'"
    assert not any("http" in value or "*" in value or "unsafe-eval" in value for value in policy.values())
    assert "'unsafe-inline'" not in policy["script-src"]
    assert "access-control-allow-origin" not in answer.headers
    assert "scarf" not in answer.text
