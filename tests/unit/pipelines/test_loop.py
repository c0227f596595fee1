"""Data flows one way, except for what the models ask of the next cycles."""

import re
from pathlib import Path

import pipelines

_REQUESTS = {"requests__readings", "requests__attestations", "requests__searches"}
# What the last build holds: ranges, superseded attestations, and the known holders of a token.
_STATE = {"int_views_transformed", "int_attestations", "int_balances_latest"}
_READ = re.compile(r"\b(?:intermediate|requests|marts|staging)\.(\w+)")


def test_pipeline_reads_only_named_models() -> None:
    root = Path(pipelines.__file__).parent
    read = set()
    for path in [*root.rglob("*.py"), *root.rglob("*.sql")]:
        if "deliver" not in path.relative_to(root).parts and "defs" not in path.relative_to(root).parts:
            read |= set(_READ.findall(path.read_text()))
    assert {name for name in read if "__" in name or name.startswith("int_")} == _REQUESTS | _STATE
