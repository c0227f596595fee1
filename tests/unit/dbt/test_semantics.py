"""Descriptions of every mart: its grain, and the unit of each number."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

_MODELS = Path(__file__).resolve().parents[3] / "dbt_project" / "models"
_PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "marts.md"
_NUMBERS = re.compile(r"(tiny|small|big|huge)?int(eger)?|bignum|double|decimal\(.*\)")
# Exact numbers stored as text, because no type of DuckDB can represent them.
_TEXT_NUMBERS = re.compile(r"exact decimal text|^Share of|^The same (sum|as share|in whole)|coefficient|index: sum")
_GRAIN = re.compile(r"(^|\. )Grain: one row per [^.]+\.")
_UNIT = re.compile(r"\. Unit: ([^.]+)\.$")


def _marts() -> list[dict[str, Any]]:
    files = sorted(file for schema in ("marts", "bi") for file in (_MODELS / schema).rglob("*__models.yml"))
    return [model for file in files for model in yaml.safe_load(file.read_text())["models"]]


def _numbers() -> Iterator[tuple[str, str, str]]:
    for mart in _marts():
        for column in mart["columns"]:
            described = column["description"]
            if _NUMBERS.fullmatch(column["data_type"]) or _TEXT_NUMBERS.search(described):
                yield mart["name"], column["name"], described


@pytest.mark.parametrize("mart", _marts(), ids=lambda mart: mart["name"])
def test_every_mart_states_its_grain(mart: dict[str, Any]) -> None:
    assert _GRAIN.search(mart["description"]), mart["description"]


def test_every_number_states_its_unit() -> None:
    found = list(_numbers())
    assert len(found) > 150
    assert [(mart, column) for mart, column, described in found if not _UNIT.search(described)] == []


def test_units_are_explained_on_the_page() -> None:
    explained = set(re.findall(r"^\| `([^`]+)` \|", _PAGE.read_text().partition("## Units")[2], re.MULTILINE))
    stated = {match[1] for _, _, described in _numbers() if (match := _UNIT.search(described))}
    assert stated == explained


def test_a_number_in_base_units_is_exact_and_a_double_is_for_charts() -> None:
    for mart in _marts():
        for column in mart["columns"]:
            name, kind = column["name"], column["data_type"]
            assert name.endswith("_raw") == (kind == "bignum"), f"{mart['name']}.{name}"
            # Views for BI tools have numbers in place of exact text.
            is_for_charts = name.endswith("_approx") or mart["name"].startswith("bi_")
            assert is_for_charts or kind != "double", f"{mart['name']}.{name}"
            assert not name.endswith("_approx") or kind == "double", f"{mart['name']}.{name}"
