"""The sentences that the product promises, each with the one test that proves it: `@pytest.mark.proof("…")`.

`python -m tests.proofs` writes their list into docs/testing.md.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests import CHECKOUT

PAGE = CHECKOUT / "docs" / "testing.md"
_BEGIN, _END = "<!-- Made by `python -m tests.proofs`; do not edit. -->\n", "<!-- End of the list. -->\n"


class Proof(NamedTuple):
    """A sentence, the test that proves it, and the command that runs the test: `make test` or `.ci/run`."""

    sentence: str
    file: Path
    test: str
    command: str


def proofs() -> Iterator[Proof]:
    """Find the proofs in the source of all tests, in order of files.

    Raises:
        ValueError: a proof is run by `make test-all` alone.
    """
    for file in sorted((CHECKOUT / "tests").rglob("test_*.py")):
        if "pytest.mark.proof" not in (text := file.read_text()):
            continue
        body = ast.parse(text).body
        of_file = [ast.unparse(one) for one in body if isinstance(one, ast.Assign) and "pytestmark" in ast.unparse(one)]
        for test in body:
            if isinstance(test, ast.FunctionDef):
                # A parametrized case may have a marker of its own.
                decorators = [ast.unparse(one) for one in test.decorator_list if "parametrize" not in ast.unparse(one)]
                marks = " ".join([*of_file, *decorators])
                for one in test.decorator_list:
                    if isinstance(one, ast.Call) and ast.unparse(one.func) == "pytest.mark.proof":
                        if "pytest.mark.release" in marks:
                            raise ValueError(f"{file}: the proof {test.name} is not run by `.ci/run`")
                        command = "`.ci/run`" if "pytest.mark.ci" in marks else "`make test`"
                        yield Proof(ast.literal_eval(one.args[0]), file.relative_to(CHECKOUT), test.name, command)


def page(found: Iterable[Proof]) -> str:
    """Return docs/testing.md with a list of these proofs."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    rows = [f"| {one.sentence} | `{one.file.relative_to('tests')}::{one.test}` | {one.command} |" for one in found]
    return "\n".join(
        [before + _BEGIN, "| sentence | proof, in `tests/` | run by |", "| --- | --- | --- |", *rows, _END + after]
    )


if __name__ == "__main__":
    PAGE.write_text(page(proofs()))
