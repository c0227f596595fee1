"""Custom materializations of the project do not reuse names of dbt's own."""

import re
from importlib.resources import files
from pathlib import Path

_PROJECT = Path(__file__).parents[3] / "dbt_project"
_NAME = re.compile(r"{%-?\s*materialization\s+(\w+)")


def names(folder: Path) -> set[str]:
    return {name for path in folder.rglob("*.sql") for name in _NAME.findall(path.read_text())}


def test_no_materialization_overrides_one_of_dbt_s() -> None:
    of_dbt = names(Path(str(files("dbt.include.global_project")))) | names(Path(str(files("dbt.include.duckdb"))))
    assert {"table", "view", "incremental", "table_function"} <= of_dbt
    assert names(_PROJECT) == {"replaced_table", "appended_table"}
    assert not names(_PROJECT) & of_dbt
