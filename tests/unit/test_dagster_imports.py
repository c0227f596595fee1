"""Imports of Dagster: only where it is used, and only its public interface, except in the module for its pages."""

import ast
import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_FOLDERS = ("api", "cli", "control", "figures", "ledgermart", "pipelines", "tests", "warehouse")
_PAGES = {"dagster._core.workspace.context", "dagster._core.workspace.load_target"}
_ALLOWED = {
    "cli/dagster_pages.py": _PAGES,
    # Arguments of a launcher, as the daemon passes them.
    "tests/integration/test_deploy.py": {"dagster._core.launcher.base", "dagster._core.origin"},
    "tests/unit/cli/test_dagster_pages.py": _PAGES,
}


def private_imports(path: Path) -> set[str]:
    """Return the private modules of Dagster that a file imports."""
    found = set()
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if "dagster._" in text else ():
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name.startswith("dagster._")}


def test_only_one_module_imports_private_parts_of_dagster() -> None:
    private = {
        str(path.relative_to(_ROOT)): private_imports(path)
        for folder in _FOLDERS
        for path in (_ROOT / folder).rglob("*.py")
    }
    assert {path: names for path, names in private.items() if names} == _ALLOWED


def test_commands_that_run_no_cycle_import_neither_dagster_nor_web3(tmp_path: Path) -> None:
    code = """
import sys
import cli.backup, cli.export, cli.moving, cli.restore, cli.sandbox, cli.up, pipelines.defs.records
from cli.main import main
main(["status"], standalone_mode=False)
print(*sys.modules)
"""
    environment = {**os.environ, "LEDGERMART_DATA_DIR": str(tmp_path / "data")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=_ROOT, env=environment
    )
    loaded = set(done.stdout.split())
    assert "cli.status" in loaded
    assert not {"dagster", "dbt", "pandas", "web3"} & loaded
