"""Built pages of the reports, read once: HTML, and scripts and styles with their compressed forms.

`reports/build.mjs` builds them. `api.reports.pages` sets the sites that may frame a page.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from api.errors import ApiError
from api.reports.schemas.links import Report
from control.resources import REPORTS

FOLDER = REPORTS
PAGES = frozenset(f"{name}.html" for name in (*get_args(Report), "superset", "error"))

_MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".map": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".woff2": "font/woff2",
}
_SUFFIXES = {"br": ".br", "gzip": ".gz"}
_HASHED = re.compile(r".+-[0-9A-Za-z_]{8,}\.[a-z0-9]+")
_QUALITY = re.compile(r"(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)", re.ASCII)


class BuildError(Exception):
    """The build contains a file that cannot be served; the message names it."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A file: its media type, and its content by content coding, always including `identity`."""

    media_type: str
    contents: Mapping[str, bytes]
    etags: Mapping[str, str]
    is_immutable: bool
    """True if the file name contains a hash of the content."""


@dataclass(frozen=True, slots=True)
class Build:
    """Pages and assets by file name."""

    pages: Mapping[str, bytes]
    assets: Mapping[str, Asset]


def read_build(folder: Path) -> Build | None:
    """Read the built pages; return None if some of them are missing.

    Raises:
        BuildError: a file has an unknown type.
    """
    pages = {path.name: path.read_bytes() for path in sorted(folder.glob("*.html"))}
    if not pages.keys() >= PAGES:
        return None
    files = {path.name: path for path in sorted((folder / "assets").iterdir()) if path.is_file()}
    whole = [name for name in files if not name.endswith(tuple(_SUFFIXES.values()))]
    return Build(pages, {name: _read_asset(files, name) for name in whole})


def choose_coding(accept_encoding: str | None, contents: Mapping[str, bytes]) -> str:
    """Return the available content coding that the client prefers; of equal ones, the one with the smallest content.

    Raises:
        ApiError: 406, the client accepts none of them.
    """
    # Without the header, HTTP allows any coding. But such clients often cannot decompress, so send plain content.
    qualities = {"identity": 1.0} if accept_encoding is None else _read_qualities(accept_encoding)
    ranked = [
        (quality, -len(content), coding)
        for coding, content in contents.items()
        if (quality := _quality_of(coding, qualities)) > 0
    ]
    if not ranked:
        detail = f"this is sent as {', '.join(contents)}; accept one of them in Accept-Encoding"
        raise ApiError(406, "not-acceptable", detail)
    return max(ranked)[2]


def _read_asset(files: Mapping[str, Path], name: str) -> Asset:
    media_type = _MEDIA_TYPES.get(files[name].suffix)
    if media_type is None:
        raise BuildError(f"{files[name]} is of no known kind; known are {', '.join(_MEDIA_TYPES)}")
    contents = {"identity": files[name].read_bytes()}
    for coding, suffix in _SUFFIXES.items():
        if name + suffix in files:
            contents[coding] = files[name + suffix].read_bytes()
    etags = {coding: f'"{hashlib.sha256(content).hexdigest()[:32]}"' for coding, content in contents.items()}
    return Asset(media_type, contents, etags, _HASHED.fullmatch(name) is not None)


def _read_qualities(header: str) -> dict[str, float]:
    qualities: dict[str, float] = {}
    for part in header.lower().split(","):
        coding, *parameters = (piece.strip() for piece in part.split(";"))
        if not coding:
            continue
        quality = next((text[2:].strip() for text in parameters if text.startswith("q=")), "1")
        # A malformed weight counts as a refusal of the coding.
        qualities[coding] = float(quality) if _QUALITY.fullmatch(quality) else 0.0
    return qualities


def _quality_of(coding: str, qualities: Mapping[str, float]) -> float:
    if coding in qualities:
        return qualities[coding]
    if "*" in qualities:
        return qualities["*"]
    # Plain content is acceptable unless refused, but every listed coding is preferred.
    return 0.0001 if coding == "identity" else 0.0
