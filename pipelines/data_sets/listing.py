"""The files of a data set: their names say which blocks or which day they hold."""

import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from control.networks.data_sets import DATE, FIRST, LAST, TABLE, DataSet
from control.ranges import BlockRange
from control.settings import S3
from pipelines.data_sets.errors import FileRefused
from pipelines.data_sets.reader import Reader

# Files of one data set. A network's life has some thousand days.
_MOST_FILES = 200_000
_NAMED = {DATE: r"\d{4}-\d{2}-\d{2}", FIRST: r"\d{1,18}", LAST: r"\d{1,18}"}
_PART = re.compile(r"(\{(?:date|first|last)\}|\*)")
# The query engine expands these characters in each path that it is given.
_OF_PATTERNS = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class File:
    """One file, as last listed."""

    path: str
    byte_count: int
    modified_at: datetime


@dataclass(frozen=True)
class Unit:
    """Files that hold the same blocks, and are read together.

    Attributes:
        blocks: the blocks in their names; None where these name a day.
        day: the day in their names, UTC; None where these name blocks.
    """

    data_set: DataSet
    files: tuple[File, ...]
    blocks: BlockRange | None
    day: date | None

    @property
    def name(self) -> str:
        """The name of its first file in the data set's folder."""
        return self.files[0].path.removeprefix(self.data_set.folder)

    def paths_of(self, table: str, main: str) -> list[str]:
        """Return the pattern of the files of another kind for the same blocks.

        Args:
            table: their kind.
            main: the kind of the unit's own files.
        """
        if table == main:
            return [file.path for file in self.files]
        pattern = self.data_set.files.replace(TABLE, table)
        paths = []
        for file in self.files:
            found = _matcher(self.data_set.files.replace(TABLE, main)).fullmatch(file.path)
            assert found is not None, "a unit has the files that match its pattern"
            texts = {f"{{{name}}}": text for name, text in found.groupdict().items()}
            paths.append("".join(texts.get(part, part) for part in _PART.split(pattern)))
        return list(dict.fromkeys(paths))


def _matcher(pattern: str) -> re.Pattern[str]:
    seen: set[str] = set()
    parts = []
    for part in _PART.split(pattern):
        if part == "*":
            parts.append("[^/]*")
        elif part in _NAMED:
            name = part[1:-1]
            parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>{_NAMED[part]})")
            seen.add(name)
        else:
            parts.append(re.escape(part))
    return re.compile("".join(parts))


def list_units(reader: Reader, data_set: DataSet, table: str) -> list[Unit]:
    """List the files of a data set, in the order of their blocks or days.

    Links to elsewhere are left out, and so are names that the query engine would take for patterns.

    Args:
        reader: may read the data set's folder.
        data_set: the data set.
        table: kind of its files that has the rows.

    Raises:
        FileRefused: a name is impossible; names the file.
        FilesUnreadable: the store does not answer.
    """
    pattern = data_set.files.replace(TABLE, table)
    glob = "".join("*" if part in _NAMED else part for part in _PART.split(pattern))
    matcher = _matcher(pattern)
    named = {
        path: found
        for (path,) in reader.run("select file from glob(?) limit ?", [glob, _MOST_FILES + 1]).fetchall()
        if (found := matcher.fullmatch(path)) and not _OF_PATTERNS.search(path) and _is_inside(path, data_set.folder)
    }
    if not named:
        return []
    if len(named) > _MOST_FILES:
        raise FileRefused(f"it has more than {_MOST_FILES:,} files")
    # A store's listing has sizes and times: one request for 1,000 files. Named files cost a request each.
    listed = glob if data_set.folder.startswith(S3) else list(named)
    grouped: dict[tuple[BlockRange | None, date | None], list[File]] = defaultdict(list)
    for path, byte_count, modified_at in reader.run(
        "select filename, size, last_modified::timestamp from read_blob(?) order by filename", [listed]
    ).fetchall():
        if path in named:
            grouped[_span(named[path])].append(File(path, byte_count, modified_at))
    units = [Unit(data_set, tuple(files), *span) for span, files in grouped.items() if span != (None, None)]
    return sorted(units, key=lambda unit: (unit.blocks or (0, 0), unit.day or date.min))


def _is_inside(path: str, folder: str) -> bool:
    """Return whether a local file is in the folder, and no link to elsewhere."""
    return folder.startswith(S3) or Path(path).resolve().is_relative_to(Path(folder).resolve())


def _span(found: re.Match[str]) -> tuple[BlockRange | None, date | None]:
    """Return the blocks or the day that a name states; neither where it states none that can be."""
    texts = found.groupdict()
    if "date" in texts:
        try:
            return None, date.fromisoformat(texts["date"])
        except ValueError:
            return None, None
    first, last = int(texts["first"]), int(texts["last"])
    return (BlockRange(first, last), None) if first <= last else (None, None)


def unchanged(reader: Reader, unit: Unit) -> bool:
    """Return whether the files have the size and the time of last change that the listing found."""
    paths = [file.path for file in unit.files]
    rows = reader.run(
        "select filename, size, last_modified::timestamp from read_blob(?) order by filename", [paths]
    ).fetchall()
    return [File(*row) for row in rows] == sorted(unit.files, key=lambda file: file.path)
