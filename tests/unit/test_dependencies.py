"""Imported and declared distributions of the product."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires, version

import pytest
from packaging.requirements import Requirement

from tests import CHECKOUT

PACKAGES = ("api", "cli", "control", "figures", "ledgermart", "pipelines", "warehouse")
# Loaded only by an instance of Dagster that `deploy/` configures.
CLUSTER = {"dagster_postgres", "psycopg2", "dagster_k8s", "kubernetes", "dagster_docker", "docker"}
# Used without an import: commands, adapters loaded by dbt, drivers loaded by SQLAlchemy, extensions loaded by DuckDB.
NOT_IMPORTED = {
    "dbt-core",
    "dbt-duckdb",
    "duckdb-extension-ducklake",
    "duckdb-extension-httpfs",
    "duckdb-extension-postgres-scanner",
}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> set[str]:
    """Return the distributions of the modules that product modules import."""
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


def test_declared_dependencies_equal_the_imported_ones() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    declared = {normal(re.split(r"[\[<>=~ ]", dependency)[0]) for dependency in project["dependencies"]}
    assert declared - NOT_IMPORTED == imported() - NOT_IMPORTED
    assert declared >= NOT_IMPORTED


@pytest.mark.release
def test_packages_of_a_cluster_are_not_imported_unless_configured() -> None:
    code = "import sys, pipelines.definitions, api.app, cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=CHECKOUT)
    loaded = set(done.stdout.split())
    assert "pipelines.definitions" in loaded
    assert not CLUSTER & loaded


def test_packages_of_a_cluster_match_the_version_of_dagster() -> None:
    # Each requires exactly one version of Dagster: pip would refuse another one, but the lock is installed without it.
    dagster = version("dagster")
    for name in ("dagster-postgres", "dagster-k8s", "dagster-docker"):
        (required,) = [Requirement(text) for text in requires(name) or () if Requirement(text).name == "dagster"]
        assert dagster in required.specifier, name
