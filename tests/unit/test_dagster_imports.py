"""Imports of Dagster: only its public interface, except in the module for its pages."""

import ast
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


def imported(path: Path) -> set[str]:
    """Return the modules that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_only_one_module_imports_private_parts_of_dagster() -> None:
    private = {
        str(path.relative_to(_ROOT)): {name for name in imported(path) if name.startswith("dagster._")}
        for folder in _FOLDERS
        for path in (_ROOT / folder).rglob("*.py")
    }
    assert {path: names for path, names in private.items() if names} == _ALLOWED
