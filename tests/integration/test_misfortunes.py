"""Misfortunes behind failing providers and on a healthy node: all numbers equal the node's, with equal end states."""

import copy
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.client import ApiClient
from tests.integration.misfortunes import PROVIDER_FAULTS, Result, compare, differences, run_all
from tests.integration.misfortunes_scripts import MISFORTUNES, Case, Misfortune
from tests.integration.misfortunes_system import Faults, System

Answer = dict[str, Any]

pytestmark = pytest.mark.release


class Finished(NamedTuple):
    """An open system after all misfortunes, with the result of the comparison."""

    system: System
    cases: dict[Misfortune, Case]
    result: Result


@contextmanager
def finished(prepared: Path, folder: Path, faults: Faults | None) -> Iterator[Finished]:
    """Run all misfortunes on a copy of a prepared folder."""
    with System(shutil.copytree(prepared, folder), faults) as system:
        cases = run_all(system)
        yield Finished(system, cases, compare(system, cases))


@pytest.fixture(scope="module")
def troubled(ready_folder: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    with finished(ready_folder[0], tmp_path_factory.mktemp("troubled") / "system", PROVIDER_FAULTS) as run:
        yield run


def check(result: Result) -> None:
    """Assert that every misfortune happened and has comparisons, without problems."""
    assert result.problems == []
    assert list(result.findings) == list(MISFORTUNES)
    for misfortune, finding in result.findings.items():
        assert finding.total == finding.agreed + finding.explained, misfortune.name
        assert finding.agreed > 5, misfortune.name
    assert result.unused_faults == []


def test_every_number_is_the_nodes_behind_failing_providers(troubled: Finished) -> None:
    check(troubled.result)


# The test above compares the same run with the node.
@pytest.mark.release
def test_failing_providers_change_nothing(troubled: Finished, ready_folder: tuple[Path, str], tmp_path: Path) -> None:
    with finished(ready_folder[0], tmp_path / "honest", None) as honest:
        check(honest.result)
        assert differences(troubled.result.state, honest.result.state) == []


def _more(row: Answer, name: str) -> None:
    row[name] = str(int(row[name]) + 1)


LIES: dict[str, tuple[str, Callable[[Answer], object]]] = {
    # name of the lie: the changed answer, and the change
    "a holder's quantity": ("cap-table", lambda answer: _more(answer["data"][0], "quantityRaw")),
    "a holder's percentage": ("cap-table", lambda answer: answer["data"][0].update(percentage="1")),
    "a holder is left out": ("cap-table", lambda answer: answer["data"].pop()),
    "the supply": ("cap-table", lambda answer: _more(answer, "totalSupplyRaw")),
    "the remainder": ("cap-table", lambda answer: _more(answer["unattributed"], "quantityRaw")),
    "the moment": ("cap-table", lambda answer: answer["asOf"].update(blockNumber=1)),
    "a holder is unchecked": ("cap-table", lambda answer: answer["data"][0].update(reconciliation="Unchecked")),
    "a stranger is shown": ("cap-table", lambda answer: answer["data"][0].update(wallet="0x" + "11" * 20)),
    "a movement is left out": ("activities", lambda answer: answer["data"].pop()),
    "a movement's amount": ("activities", lambda answer: _more(answer["data"][0], "amountRaw")),
    "a needless adjustment": ("activities", lambda answer: answer["data"][0].update(type="Adjustment")),
    "a position's quantity": ("balances", lambda answer: _more(answer["current"][-1], "quantityRaw")),
    "a position is left out": ("balances", lambda answer: answer["current"].pop()),
    "what is collected": ("coverage", lambda answer: answer["collected"][0].update(fromBlock=1)),
}


@pytest.mark.parametrize("untruth", LIES)
def test_untruth_is_found(untruth: str, troubled: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself finds false answers of the API."""
    path, tell = LIES[untruth]
    honest = ApiClient.get
    chosen = {misfortune: case for misfortune, case in troubled.cases.items() if misfortune.name == "two tenants"}

    def lie(client: ApiClient, asked: str, **parameters: str | int) -> Answer:
        answer = copy.deepcopy(honest(client, asked, **parameters))
        if asked.endswith(f"/{path}"):
            tell(answer)
        return answer

    monkeypatch.setattr(ApiClient, "get", lie)
    assert compare(troubled.system, chosen).problems
