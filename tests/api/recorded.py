"""Success examples of the OpenAPI document, recorded from responses in tests: `api/http/examples.json`.

With RECORD_EXAMPLES in the environment (`make examples`) responses are recorded, otherwise compared.
"""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from httpx import Response

import api
from api.http import media_types
from tests.api.document import check

FILE = Path(api.__file__).parent / "http" / "examples.json"
PROBLEM = "problem"
"""The key of error responses in the file, in place of an operation's id."""
_MOST_ROWS = 2
_JSON = (media_types.JSON, media_types.PROBLEM)

_FIXED_IDS = "_01k9zr3m5e8v2c7q4w6t1x0"  # ids of the example data; other ids are random
_ID = re.compile(r"\b([a-z]+)_[0-9a-z]{26}\b")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_CURSOR = re.compile(r'(?<="nextCursor":")[^"]+')


def compare(operation_id: str, answer: Response, content: dict[str, Any]) -> None:
    """Check that a recorded example is valid and has the response's shape; with RECORD_EXAMPLES, record it.

    Args:
        operation_id: id of the operation, or `PROBLEM`.
        answer: the operation's answer.
        content: the document's `content` of the answer's status.
    """
    media_type = answer.headers["content-type"].partition(";")[0]
    text, status = answer.text, str(answer.status_code)
    recorded = json.loads(FILE.read_text()) if FILE.exists() else {}
    if "RECORD_EXAMPLES" in os.environ:
        recorded.setdefault(operation_id, {}).setdefault(status, {})[media_type] = _cut(media_type, _settled(text))
        FILE.write_text(json.dumps(dict(sorted(recorded.items())), indent=1, ensure_ascii=False) + "\n")
    example = recorded.get(operation_id, {}).get(status, {}).get(media_type)
    assert example is not None, "no example is recorded; run `make examples`"
    found = _shape(media_type, _cut(media_type, text))
    assert _shape(media_type, example) == found, "the example has other fields or rows; run `make examples`"
    if media_type in _JSON:
        check(content[media_type]["schema"], example)


def _settled(text: str) -> str:
    """Replace parts that differ between runs."""
    now = datetime.now(UTC)

    def instant(found: re.Match[str]) -> str:
        is_recent = abs(datetime.fromisoformat(found[0]) - now) < timedelta(days=1)
        return "2026-03-01T12:00:00Z" if is_recent else found[0]

    text = _ID.sub(lambda found: found[0] if _FIXED_IDS in found[0] else f"{found[1]}{_FIXED_IDS}zzz", text)
    return _CURSOR.sub("Zm9s...", _TOKEN.sub("eyJ...", _INSTANT.sub(instant, text)))


def _cut(media_type: str, text: str) -> Any:
    """Return an answer, JSON value or lines, with at most two rows in each list."""
    if media_type in _JSON:
        return _cut_lists(json.loads(text))
    header = 1 if media_type == media_types.CSV else 0
    return "".join(text.splitlines(keepends=True)[: header + _MOST_ROWS])


def _cut_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cut_lists(each) for name, each in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [_cut_lists(each) for each in value[:_MOST_ROWS]]
    return value


def _shape(media_type: str, example: Any) -> Any:
    """Return names, lengths and nesting of an example, without its values."""
    if media_type in _JSON:
        return _names(example)
    lines = example.splitlines()
    if media_type == media_types.CSV:
        return lines[0], len(lines)
    return [_names(json.loads(line)) for line in lines]


def _names(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _names(each) for name, each in value.items()}
    return [_names(each) for each in value] if isinstance(value, list) else None
