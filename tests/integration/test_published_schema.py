"""The schema for BI tools and analysts: a real published file, compared with the project's declarations."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from tests import CHECKOUT
from tests.integration.harness import Service

_MODELS = CHECKOUT / "dbt_project" / "models"


@pytest.fixture
def published(ready_service: Service) -> Path:
    return ready_service.settings.serving_dir / "current.duckdb"


def _declared(schema: str) -> dict[str, dict[str, Any]]:
    """The models of a schema by the names of their tables and views."""
    return {
        model["name"].removeprefix("bi_" if schema == "bi" else ""): model
        for file in sorted((_MODELS / schema).rglob("*__models.yml"))
        for model in yaml.safe_load(file.read_text())["models"]
    }


@pytest.mark.parametrize("schema", ["marts", "bi"])
def test_every_table_view_and_column_carries_its_description_and_type(published: Path, schema: str) -> None:
    declared = _declared(schema)
    with duckdb.connect(str(published), read_only=True) as connection:
        relations = dict(
            connection.execute(
                """
                select table_name, comment from duckdb_tables() where schema_name = $schema
                union all
                select view_name, comment from duckdb_views() where schema_name = $schema
                """,
                {"schema": schema},
            ).fetchall()
        )
        columns: dict[str, dict[str, tuple[str | None, str]]] = {}
        for relation, column, comment, kind in connection.execute(
            "select table_name, column_name, comment, data_type from duckdb_columns() where schema_name = ?", [schema]
        ).fetchall():
            columns.setdefault(relation, {})[column] = comment, kind.lower()
    if schema == "marts":
        assert relations.pop("publication") is not None
        assert all(comment for comment, _ in columns.pop("publication").values())
    assert relations == {name: model["description"] for name, model in declared.items()}
    assert columns == {
        name: {column["name"]: (column["description"], column["data_type"]) for column in model["columns"]}
        for name, model in declared.items()
    }


def test_every_view_for_bi_tools_has_the_column_of_the_tenant() -> None:
    assert [name for name, model in _declared("bi").items() if model["columns"][0]["name"] != "tenant_id"] == []


def test_every_function_has_a_comment(published: Path) -> None:
    with duckdb.connect(str(published), read_only=True) as connection:
        found = connection.execute(
            "select function_name, comment from duckdb_functions() where schema_name = 'marts'"
        ).fetchall()
    assert {name for name, _ in found} == {
        "confirming_block",
        "percentage",
        "ratio",
        "reconciliation",
        "supply_status",
        "to_amount",
        "to_rate",
        "to_value",
        "to_value_units",
    }
    assert [name for name, comment in found if not comment or "Unit: " not in comment] == []
