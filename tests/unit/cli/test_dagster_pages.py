"""Dagster's pages refuse requests that another site can make a browser send."""

import asyncio
from collections.abc import Iterator
from typing import Any

import dagster as dg
import httpx
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from starlette.types import ASGIApp, Message, Scope

from cli.dagster_pages import DagsterPages

_STOP = {"query": 'mutation { stopRunningSchedule: stopSensor(id: "x") { __typename } }'}
_PURGE = {"query": 'mutation { deletePipelineRun(runId: "x") { __typename ... on UnauthorizedError { message } } }'}


@pytest.fixture(scope="module", params=[True, False], ids=["read-only", "writes"])
def is_read_only(request: pytest.FixtureRequest) -> bool:
    """True if the pages may only be read."""
    return bool(request.param)


class Browser:
    """A client of the pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def request(self, method: str, url: str, **options: Any) -> httpx.Response:
        """Send one request; a path without a host goes to the address of the pages."""

        async def answer() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:3000") as client:
                return await client.request(method, url, **options)

        return asyncio.run(answer())

    def opens_socket(self, **headers: str) -> bool:
        """Open GraphQL's WebSocket; return whether it was accepted."""
        sent: list[Message] = []
        named = {"host": "127.0.0.1:3000", **headers}
        scope: Scope = {
            "type": "websocket",
            "scheme": "ws",
            "path": "/graphql",
            "query_string": b"",
            "subprotocols": [],
            "headers": [(name.encode(), value.encode()) for name, value in named.items()],
            "extensions": {"websocket.http.response": {}},
        }
        received = iter([{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}])

        async def receive() -> Message:
            return next(received)

        async def send(message: Message) -> None:
            sent.append(message)

        asyncio.run(self._app(scope, receive, send))
        return sent[0]["type"] == "websocket.accept"


@pytest.fixture(scope="module")
def pages(is_read_only: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The pages with separate records."""
    with (
        dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("dagster"))) as instance,
        WorkspaceProcessContext(instance, EmptyWorkspaceTarget(), read_only=is_read_only) as context,
    ):
        yield Browser(DagsterPages(context).create_asgi_app())


@pytest.mark.ci
def test_pages_work_locally_and_through_a_tunnel(pages: Browser) -> None:
    for url in ("http://127.0.0.1:3000", "http://localhost:9999"):
        assert pages.request("GET", f"{url}/runs").status_code == 200
        answer = pages.request("POST", f"{url}/graphql", json={"query": "{ __typename }"}, headers={"origin": url})
        assert answer.json() == {"data": {"__typename": "Query"}}
    assert pages.opens_socket(origin="http://127.0.0.1:3000")


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:3000", "127.0.0.1.attacker.example", ""])
def test_a_foreign_host_is_refused(pages: Browser, host: str) -> None:
    for method, path in (("GET", "/runs"), ("POST", "/graphql"), ("GET", "/server_info")):
        assert pages.request(method, path, headers={"host": host}).status_code == 400
    assert not pages.opens_socket(host=host)


def test_graphql_refuses_get(pages: Browser) -> None:
    for headers in ({}, {"accept": "text/html"}):
        answer = pages.request("GET", "/graphql", params=_STOP, headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "text/plain; application/json"]
)
def test_the_content_types_of_forms_are_refused(pages: Browser, kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    for path in ("/graphql", "/report_asset_materialization/a"):
        assert pages.request("POST", path, params=_STOP, content=b"", headers=headers).status_code == 415


@pytest.mark.parametrize("origin", ["https://attacker.example", "null", "http://127.0.0.1:8000"])
def test_a_request_of_another_site_is_refused(pages: Browser, origin: str) -> None:
    answer = pages.request("POST", "/graphql", json=_STOP, headers={"origin": origin})
    assert answer.status_code == 403
    assert not pages.opens_socket(origin=origin)


def test_runs_can_be_deleted_only_with_the_setting(pages: Browser, is_read_only: bool) -> None:
    (answer,) = pages.request("POST", "/graphql", json=_PURGE).json()["data"].values()
    assert answer["__typename"] == ("UnauthorizedError" if is_read_only else "RunNotFoundError")
