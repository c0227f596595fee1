"""Data sets: files that hold the past of a network, as its definition names them.

Reading them belongs to the pipeline; how a form's files look is known to the family of the network.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from control.settings import S3

DATE, FIRST, LAST, TABLE = "{date}", "{first}", "{last}", "{table}"
NODE = "node"
"""The source of rows from a node, in coverage; no data set has this name."""
_PLACEHOLDER = re.compile(r"\{[^}]*\}")
_ENDINGS = (".parquet", ".csv", ".csv.gz")


class FormShape(NamedTuple):
    """Requirements of a form on definitions.

    Attributes:
        tables: kinds of files; if there are several, `{table}` stands for them in the pattern.
        columns: columns that the definition must name; empty where the form has its own names.
    """

    tables: tuple[str, ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DataSet:
    """Files with a part of a network's past.

    Attributes:
        name: unique in the network.
        form: a form that the network's family knows.
        files: pattern of the paths or `s3://` addresses of the files. `{date}` stands for a day (UTC), or `{first}` and
            `{last}` for block numbers, both included. `{table}` stands for the kind of files, `*` for any text without
            a slash.
        columns: names in the files, by the form's own names; empty where the form has its own names.
    """

    name: str
    form: str
    files: str
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The part of `files` before its first placeholder or wildcard, up to a slash."""
        fixed = re.split(r"[{*]", self.files, maxsplit=1)[0]
        return fixed[: fixed.rindex("/") + 1]


def check_data_set(data_set: DataSet, forms: Mapping[str, FormShape]) -> None:
    """Check a data set against the forms of the network's family.

    Raises:
        ValueError: it cannot be read; names the field and the fix.
    """
    if not forms:
        raise ValueError("networks of this family have no data sets; remove it")
    if data_set.name == NODE:
        raise ValueError("field 'name': is 'node', which means rows of a node; write another name")
    shape = forms.get(data_set.form)
    if shape is None:
        raise ValueError(f"field 'form': is {data_set.form!r}; write one of {', '.join(forms)}")
    files = data_set.files
    if not files.startswith((S3, "/")) or any(not character.isprintable() for character in files):
        raise ValueError(f"field 'files': is {files!r}; write a path from the root of the disk, or an s3:// address")
    if not files.endswith(_ENDINGS):
        raise ValueError(f"field 'files': is {files!r}; the names of the files must end in {', '.join(_ENDINGS)}")
    if any(mark in files for mark in ("..", "**", "?", "[")):
        raise ValueError(f"field 'files': is {files!r}; write it without .. ** ? and [")
    found = _PLACEHOLDER.findall(files)
    if sorted(set(found) - {TABLE}) not in ([DATE], [FIRST, LAST]):
        raise ValueError(f"field 'files': is {files!r}; write {DATE}, or {FIRST} and {LAST}, where the names differ")
    if len(shape.tables) > 1 and TABLE not in found:
        raise ValueError(
            f"field 'files': is {files!r}; write {TABLE} where the names have {' or '.join(shape.tables)}: "
            f"the form {data_set.form} needs all of them"
        )
    if missing := [name for name in shape.columns if name not in data_set.columns]:
        raise ValueError(f"field 'columns': lacks {', '.join(missing)}; add the names of these columns in the files")
    if unknown := [name for name in data_set.columns if name not in shape.columns]:
        expected = f"the form {data_set.form} has {', '.join(shape.columns) or 'names of its own'}"
        raise ValueError(f"field 'columns': {', '.join(unknown)} is unknown; {expected}")
