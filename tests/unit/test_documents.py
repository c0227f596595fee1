"""Documents agree with the code: settings, commands, problem codes and links."""

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from api.http import problem_codes
from cli.main import main
from control.settings import VARIABLES
from tests import CHECKOUT, proofs
from tests.links import dead_links

_DOCS = CHECKOUT / "docs"


def test_every_setting_is_documented_with_its_default() -> None:
    text = (_DOCS / "reference" / "settings.md").read_text()
    for variable in VARIABLES:
        assert f"| `{variable.name}` | `{variable.default}` | {variable.meaning} |" in text


def test_every_command_is_documented() -> None:
    text = (_DOCS / "reference" / "commands.md").read_text()
    for name in main.commands:
        assert f"`ledgermart {name}" in text


def test_link_to_a_missing_file_image_or_heading_is_reported(tmp_path: Path) -> None:
    other = tmp_path / "other.md"
    other.write_text("# The `id`, twice\n\n## Same\n\n## Same\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n[good](other.md#the-id-twice) [good](other.md#same-1) [good](#page) [good](https://elsewhere.example)\n\n"
        "| [gone](gone.md) | ![gone](gone.png) |\n| --- | --- |\n| [bad](other.md#same-2) | [bad](#pages) |\n\n"
        "`[code](gone.md)`\n"
    )
    assert list(dead_links([other, page])) == [
        f"{page}: gone.md: no such file",
        f"{page}: gone.png: no such file",
        f"{page}: other.md#same-2: no such heading",
        f"{page}: #pages: no such heading",
    ]


def test_list_of_proofs_is_current_and_each_sentence_has_one() -> None:
    """`python -m tests.proofs` writes it."""
    found = list(proofs.proofs())
    assert proofs.PAGE.read_text() == proofs.page(found)
    assert len({proof.sentence for proof in found}) == len(found)


def test_page_of_problem_codes_is_current() -> None:
    """`python -m api.http.problem_codes` writes it."""
    assert problem_codes.PAGE.read_text() == problem_codes.page()


def test_every_problem_code_that_the_service_raises_is_explained() -> None:
    explained = {(problem.status, problem.code) for problem in problem_codes.PROBLEM_CODES}
    assert len(explained) == len(problem_codes.PROBLEM_CODES)
    assert explained == set(_raised_problems())


def test_every_error_code_of_a_value_is_explained() -> None:
    assert set(problem_codes.FIELD_CODES) == set(_raised_field_codes())


# Codes without a literal in the source: composed, passed on, or derived from the framework's status.
_COMPOSED_PROBLEMS = {
    (400, "bad-request"),
    (400, "csv-only"),
    (400, "pages-only"),
    (400, "repeated-parameter"),
    (400, "unknown-parameter"),
    (404, "token-not-found"),
    (404, "unknown-route"),
    (404, "wallet-not-found"),
    (405, "method-not-allowed"),
    (409, "duplicate-token"),
    (409, "duplicate-wallet"),
    (413, "body-too-large"),
    (422, "invalid-body"),
}
# Only commands raise these.
_OF_COMMANDS = {
    (404, "key-not-found"),
    (404, "tenant-not-found"),
    (409, "duplicate-tenant"),
    (409, "moving"),
    (409, "not-moving"),
    (409, "other-shard"),
    (409, "rows-left"),
}
_COMPOSED_FIELD_CODES = {"missing", "repeated"}
_OF_COMMAND_FIELDS = {"unknown-role"}


def _raised_problems() -> Iterator[tuple[int, str]]:
    yield from _COMPOSED_PROBLEMS
    for name, call in _calls():
        texts = _texts(call)
        found: tuple[int, str] | None = None
        match name:
            case "ApiError" | "listed_errors" if isinstance(call.args[0], ast.Constant) and texts:
                found = (int(str(call.args[0].value)), texts[0])
            case "Conflict" if texts:
                found = (409, texts[0])
            case "NotFound" if texts:
                found = (404, f"{texts[0].replace(' ', '-')}-not-found")
        if found is not None and found not in _OF_COMMANDS:
            yield found
    yield 422, "invalid-parameter"


def _raised_field_codes() -> Iterator[str]:
    yield from _COMPOSED_FIELD_CODES
    for name, call in _calls():
        code = None
        if name == "FieldError":
            code = _named(call).get("code")
        elif name in ("Invalid", "Unparseable", "invalid_parameter") and isinstance(call.args[1], ast.Constant):
            code = str(call.args[1].value)
        if code is not None and code not in _OF_COMMAND_FIELDS:
            yield code


@cache
def _calls() -> Sequence[tuple[str, ast.Call]]:
    """Yield the calls of plain names in the service's source, with the name."""
    trees = [ast.parse(path.read_text()) for name in ("api", "control") for path in (CHECKOUT / name).rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [(call.func.id, call) for call in calls if isinstance(call.func, ast.Name)]


def _texts(call: ast.Call) -> list[str]:
    """Return the literal texts among the first two positional arguments, one of which may be a code."""
    return [one.value for one in call.args[:2] if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def _named(call: ast.Call) -> dict[str, str]:
    """Return the keyword arguments that are literals, as text."""
    return {one.arg: str(one.value.value) for one in call.keywords if one.arg and isinstance(one.value, ast.Constant)}
