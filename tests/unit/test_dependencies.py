"""What the product imports, and what it declares."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

from control.settings import CHECKOUT

PACKAGES = ("api", "cli", "control", "figures", "ledgermart", "pipelines", "warehouse")
# Used without an import: by their commands, by dbt's and SQLAlchemy's own look-up of adapters and drivers.
NOT_IMPORTED = {"dbt-core", "dbt-duckdb", "psycopg"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> set[str]:
    """Distributions of the modules that product modules import."""
    modules = set()
    for package in PACKAGES:
        for file in (CHECKOUT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    modules |= {name.name.split(".")[0] for name in node.names}
                elif isinstance(node, ast.ImportFrom):
                    modules.add(str(node.module).split(".")[0])
    known = packages_distributions()
    return {normal(known[module][0]) for module in modules - set(PACKAGES) - set(sys.stdlib_module_names)}


def test_what_is_imported_is_declared_and_what_is_declared_is_used() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    declared = {normal(re.split(r"[\[<>=~ ]", dependency)[0]) for dependency in project["dependencies"]}
    assert declared - NOT_IMPORTED == imported() - NOT_IMPORTED
    assert declared >= NOT_IMPORTED
