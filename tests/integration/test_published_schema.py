"""The schema that BI tools and analysts meet: a really published file, beside what the project declares."""

from pathlib import Path

import duckdb
import pytest
import yaml

from tests.integration.harness import CHECKOUT, Service

_MODELS = CHECKOUT / "dbt_project" / "models" / "marts"


@pytest.fixture
def published(ready_service: Service) -> Path:
    return ready_service.settings.serving_dir / "current.duckdb"


def test_every_table_view_and_column_carries_its_description(published: Path) -> None:
    declared = {
        model["name"]: (model["description"], {c["name"]: c["description"] for c in model["columns"]})
        for file in sorted(_MODELS.rglob("*__models.yml"))
        for model in yaml.safe_load(file.read_text())["models"]
    }
    with duckdb.connect(str(published), read_only=True) as connection:
        relations = dict(
            connection.execute(
                """
                select table_name, comment from duckdb_tables() where schema_name = 'marts'
                union all
                select view_name, comment from duckdb_views() where schema_name = 'marts'
                """
            ).fetchall()
        )
        columns: dict[str, dict[str, str | None]] = {}
        for relation, column, comment in connection.execute(
            "select table_name, column_name, comment from duckdb_columns() where schema_name = 'marts'"
        ).fetchall():
            columns.setdefault(relation, {})[column] = comment
    publication = relations.pop("publication")
    assert publication is not None
    assert all(columns.pop("publication").values())
    assert relations == {name: description for name, (description, _) in declared.items()}
    assert columns == {name: described for name, (_, described) in declared.items()}


def test_every_function_says_what_it_computes(published: Path) -> None:
    with duckdb.connect(str(published), read_only=True) as connection:
        found = connection.execute(
            "select function_name, comment from duckdb_functions() where schema_name = 'marts'"
        ).fetchall()
    assert {name for name, _ in found} == {
        "confirming_block",
        "percentage",
        "ratio",
        "reconciliation",
        "to_amount",
        "to_rate",
        "to_value",
        "to_value_units",
    }
    assert [name for name, comment in found if not comment or "Unit: " not in comment] == []
