"""SQL texts from the `queries/` folder of each package, rendered by Jinja: one text for both subjects and directions.

File names are unique. Files with a leading `_` are parts that others include.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from api.engine.tables import Table

_WITH = re.compile("^with ", re.MULTILINE)

_KINDS = ("token", "wallet")
_FORWARDS = {"behind": ">", "order": ""}
_BACKWARDS = {"behind": "<", "order": " desc"}
_DIRECTIONS = {"ascending": _FORWARDS, "descending": _BACKWARDS}

# Jinja values of each query, for files with several queries. Any other file is one query with the file's name.
_VARIANTS: dict[str, dict[str, dict[str, str]]] = {
    "activities": {
        f"{kind}_activities_{name}": {"kind": kind, **direction}
        for kind in _KINDS
        for name, direction in (("oldest_first", _FORWARDS), ("newest_first", _BACKWARDS))
    },
    **{
        part: {f"{kind}_{part}": {"kind": kind} for kind in _KINDS}
        for part in ("activity_blocks", "activity_digest", "activity_extent", "activity_values")
    },
    "wallet_activity": {"wallet_activity": {"kind": "wallet"}},
    "report_order": {f"report_order_{name}": direction for name, direction in _DIRECTIONS.items()},
    "holders_page": {
        f"{file}holders_by_{key}_{name}{before}": {"key": column, "before": before, "file": file, **direction}
        for key, column in (("rank", "rank"), ("wallet", "holder_address"), ("reconciliation", "reconciliation"))
        for name, direction in _DIRECTIONS.items()
        for before in ("", "_with_before")
        for file in ("", "file_of_")
    },
}


@cache
def load_queries() -> Mapping[str, str]:
    """Return the text of every query by name; rendered once per process."""
    return MappingProxyType(dict(_rendered()))


def _rendered() -> Iterator[tuple[str, str]]:
    environment = Environment(  # nosec B701 # SQL, not HTML
        loader=FileSystemLoader([str(room / "queries") for room in files("api").iterdir() if room.is_dir()]),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    for file in environment.list_templates(extensions=["sql"]):
        name = file.removesuffix(".sql")
        if not name.startswith("_"):
            template = environment.get_template(file)
            for query, values in _VARIANTS.get(name, {name: {}}).items():
                yield query, template.render(values)


def over(tables: Mapping[str, Table], text: str) -> str:
    """Return a query text in which each key names its table, by common table expressions."""
    named = ",\n\n".join(f"{name} as (\n\n    from {table.name}\n\n)" for name, table in tables.items())
    if not named:
        return text
    if _WITH.search(text):
        return _WITH.sub(lambda _: f"with {named},\n\n", text, count=1)
    return f"with {named}\n\n{text}"
