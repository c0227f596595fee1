"""The exposures of the dbt project against the marts that the API, reports and Superset really use."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from litestar.testing import TestClient

from api.engine.query_texts import load_queries
from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from tests.api import marts
from tests.api.world import World

_CHECKOUT = Path(__file__).resolve().parents[2]
_EXPOSURES = _CHECKOUT / "dbt_project" / "models" / "marts" / "_marts__exposures.yml"
_DATASETS = _CHECKOUT / "bi" / "superset" / "assets" / "datasets"
_NAMED = re.compile(r"\bmarts\.(\w+)(?!\w*\()")


def exposed(name: str) -> set[str]:
    """Return the marts that an exposure names."""
    (found,) = (one for one in yaml.safe_load(_EXPOSURES.read_text())["exposures"] if one["name"] == name)
    return set(re.findall(r"ref\('(\w+)'\)", " ".join(found["depends_on"])))


def named(sql: str) -> set[str]:
    """Return the marts that a query names."""
    return set(_NAMED.findall(sql)) & marts.contract().keys()


class _Recorded(dict[str, str]):
    """The API's queries, which record each used query."""

    def __init__(self) -> None:
        super().__init__(load_queries())
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.used.add(name)
        return super().__getitem__(name)

    @property
    def marts(self) -> set[str]:
        """The marts of the used queries."""
        return {mart for name in self.used for mart in named(super(_Recorded, self).__getitem__(name))}


@pytest.fixture
def queries() -> _Recorded:
    return _Recorded()


@pytest.fixture
def client(queries: _Recorded, valued: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient[Any]]:
    monkeypatch.setattr("api.engine.serving.load_queries", lambda: queries)
    with valued.client() as client:
        yield client


def read_report(client: TestClient[Any], report: str, asked: dict[str, str]) -> dict[str, Any]:
    """Read all data of a report page; return its `asOf`."""
    link = client.get(f"/v1/reports/{report}", params=asked)
    assert link.status_code == 200, link.text
    header = {"Authorization": f"Bearer {link.json()['reportUrl'].partition('#t=')[2]}"}
    sorts = ("rank", "-rank") if report == "cap-table" else ("date", "-date", "value")
    for path in ("summary", *(f"rows?sort={sort}" for sort in sorts), "rows?q=0x1", "csv"):
        answer = client.get(f"/embed/data/{report}/{path}", headers=header)
        assert answer.status_code == 200, answer.text
    as_of: dict[str, Any] = client.get(f"/embed/data/{report}/summary", headers=header).json()["asOf"]
    return as_of


def test_api_exposure_names_the_marts_of_its_queries() -> None:
    assert exposed("api") == {mart for sql in load_queries().values() for mart in named(sql)}


def test_cap_table_report_exposure_names_the_marts_it_reads(client: TestClient[Any], queries: _Recorded) -> None:
    newest = read_report(client, "cap-table", {"tokenId": EXAMPLE_TOKEN_ID})
    read_report(client, "cap-table", {"tokenId": EXAMPLE_TOKEN_ID, "asOf": f"block:{newest['blockNumber'] - 1}"})
    assert exposed("cap_table_report") == queries.marts


def test_wallet_activity_report_exposure_names_the_marts_it_reads(client: TestClient[Any], queries: _Recorded) -> None:
    newest = read_report(client, "wallet-activity", {"walletId": EXAMPLE_WALLET_ID})
    read_report(client, "wallet-activity", {"walletId": EXAMPLE_WALLET_ID, "to": newest["blockTime"]})
    assert exposed("wallet_activity_report") == queries.marts


def test_superset_exposure_names_the_views_of_its_datasets() -> None:
    found: set[str] = set()
    for file in _DATASETS.glob("*.yaml"):
        dataset = yaml.safe_load(file.read_text())
        assert dataset["schema"] == "bi"
        found |= set(re.findall(r"\bbi\.(\w+)", dataset["sql"])) if dataset["sql"] else {dataset["table_name"]}
    assert exposed("superset") == {f"bi_{view}" for view in found}
