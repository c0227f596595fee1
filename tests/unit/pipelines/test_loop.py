"""Data flows one way, except for the requests of the models to the next cycles. Names of statements are unique."""

import re
from pathlib import Path
from types import ModuleType

import pytest

import api
import pipelines

_REQUESTS = {"requests__readings", "requests__attestations", "requests__searches"}
# Records of the last build: its ranges, superseded attestations, and the known holders of tokens.
_STATE = {"int_views_transformed", "int_attestations", "int_balances_latest"}
_READ = re.compile(r"\b(?:intermediate|requests|marts|staging)\.(\w+)")


def test_pipeline_reads_only_named_models() -> None:
    root = Path(pipelines.__file__).parent
    read = set()
    for path in [*root.rglob("*.py"), *root.rglob("*.sql")]:
        if "deliver" not in path.relative_to(root).parts and "defs" not in path.relative_to(root).parts:
            read |= set(_READ.findall(path.read_text()))
    assert {name for name in read if "__" in name or name.startswith("int_")} == _REQUESTS | _STATE


@pytest.mark.parametrize(("package", "folder"), [(pipelines, "sql"), (api, "queries")])
def test_statements_of_all_rooms_have_different_names(package: ModuleType, folder: str) -> None:
    names = [path.stem for path in Path(str(package.__file__)).parent.glob(f"*/{folder}/*.sql")]
    assert names
    assert len(set(names)) == len(names)
