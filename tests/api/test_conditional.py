"""Conditional requests: every GET returns 304 while its response is unchanged, and 200 after a write."""

from typing import Any

import pytest
from litestar.testing import TestClient

from api.http import media_types
from tests.api.document import GETS, TABULAR, WRITES, ask, example_path, example_query
from tests.api.test_openapi_examples import embed_token
from tests.api.world import World

CONDITIONAL = [param for param in GETS if "304" in param.values[2]["responses"]]
UNCONDITIONAL = [param for param in GETS if "304" not in param.values[2]["responses"]]
EVENTS = "/v1/audit-events"
# Writes by section of the document; removals of objects come last, so that no write hinders another one.
SECTIONS: dict[str, list[Any]] = {}
for _param in sorted(WRITES, key=lambda param: (param.values[1] == "delete", -len(param.values[0]))):
    SECTIONS.setdefault("/".join(_param.values[0].split("/")[:3]), []).append(_param)


@pytest.mark.proof("an unchanged answer returns 304")
@pytest.mark.parametrize(("path", "method", "operation"), CONDITIONAL)
def test_matching_etag_returns_304(reader: TestClient[Any], path: str, method: str, operation: dict[str, Any]) -> None:
    del method
    etags = set()
    for form in operation["responses"]["200"]["content"]:
        query = example_query(operation)
        if form != media_types.JSON:
            query.pop("limit", None)
        address = example_path(path, operation)

        def get(etag: str, form: str = form, query: dict[str, str] = query, address: str = address) -> Any:
            return reader.get(address, params=query, headers={"Accept": form, "If-None-Match": etag})

        whole = get('"another"')
        etag = whole.headers["etag"]
        assert whole.status_code == 200, whole.text
        for known in (etag, f'"another", {etag}', "*") if form == media_types.JSON else (etag,):
            same = get(known)
            assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", etag)
            assert same.headers["cache-control"] == whole.headers["cache-control"]
        etags.add(etag)
    assert len(etags) == len(operation["responses"]["200"]["content"])


@pytest.mark.parametrize(("path", "method", "operation"), UNCONDITIONAL)
def test_uncacheable_response_has_no_etag(
    reader: TestClient[Any], path: str, method: str, operation: dict[str, Any]
) -> None:
    is_embedded = operation["security"] == [{"embedToken": []}]
    headers = {"Authorization": f"Bearer {embed_token(reader, path)}"} if is_embedded else {}
    answer = ask(reader, path, method, operation, headers | {"If-None-Match": "*"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers


@pytest.mark.ci
@pytest.mark.parametrize(("section", "writes"), SECTIONS.items(), ids=SECTIONS)
def test_write_changes_at_once_every_list_that_shows_it(
    world: World, client: TestClient[Any], section: str, writes: list[Any]
) -> None:
    """A table's ETag is computed without reading its rows; an unchanged table may keep its ETag."""
    form = {"Accept": media_types.CSV}
    lists = [example_path(*param.values[::2]) for param in TABULAR if param.values[0].startswith(section)]
    # Cap table changes need a moment, and writes to a token do not show in them.
    lists = [EVENTS, *(address for address in lists if not address.endswith("/changes"))]
    known = {address: client.get(address, headers=form) for address in lists}
    for path, method, operation in (param.values for param in writes):
        assert {answer.status_code for answer in known.values()} == {200}
        assert ask(client, path, method, operation, world.headers()).status_code < 300
        events = known[EVENTS].content
        for address, before in list(known.items()):
            again = client.get(address, headers=form | {"If-None-Match": before.headers["etag"]})
            if again.status_code == 304:
                assert client.get(address, headers=form).content == before.content, (operation["operationId"], address)
            elif again.status_code == 200:
                known[address] = again
            else:
                assert method == "delete"
                del known[address]
        assert known[EVENTS].content != events
