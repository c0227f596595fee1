"""One run of schemathesis over the whole document: all phases, all checks but response time, real ids and tokens.

The application runs in this process. After each write the control store is put back, but not in chains of requests.
"""

import copy
import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.python import asgi

from api import examples
from api.app import create_app
from tests.api.document import DOCUMENT
from tests.api.test_reports import REPORTS
from tests.api.world import World

# Kinds of errors that no schema can foresee: they come from several values together, or from stored objects.
# A request with one of them may be valid by the document.
FORESEEN_BY_NO_SCHEMA = frozenset(
    [
        "ambiguous-market",
        "bad-cursor",
        "conflicting-parameters",
        "csv-only",
        "cursor-expired",
        "earlier-than-from",
        "empty-range",
        "fraction-of-calendar",
        "idempotency-key-reused",
        "in-future",
        "invalid-address",
        "json-only",
        "malformed-csv",
        "newest",
        "no-archive",
        "no-history",
        "no-market",
        "no-tokens",
        "not-covered",
        "not-exact",
        "not-for-tokens",
        "not-fungible",
        "not-in-usd",
        "not-supported",
        "not-whole-seconds",
        "other-network",
        "other-symbol",
        "out-of-range",
        "pages-only",
        "repeated",
        "repeated-instant",
        "repeated-source",
        "reused",
        "same-item",
        "too-large",
        "too-many-explained",
        "too-many-intervals",
        "too-many-windows",
        "too-precise",
        "unknown-ledger",
        "unknown-pair",
        "unknown-source",
        "unknown-symbol",
        "unknown-token",
        "unsupported-type",
    ]
)
# Values of parameters and fields that name something of the example data.
_REAL: dict[str, list[Any]] = {
    "ledger": [examples.EXAMPLE_LEDGER, examples.EXAMPLE_UNUSED_LEDGER],
    "pricedAs": [examples.EXAMPLE_SYMBOL, examples.EXAMPLE_UNUSED_SYMBOL],
    "pricedIn": ["USD"],
    "bridge": ["USD"],
    "priceSource": ["src_kraken", examples.EXAMPLE_SOURCE_ID],
}


@dataclass
class Outcome:
    """Cases and failures of a run."""

    cases: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    failures: dict[str, list[str]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Return whether all checks passed, and the tool had no error."""
        return not self.failures and not self.errors

    def __str__(self) -> str:
        lines = [
            f"{sum(self.cases.values())} cases: {dict(self.cases)}",
            f"answers: {dict(sorted(self.statuses.items()))}",
        ]
        lines += [f"error: {error}" for error in self.errors]
        for title, found in sorted(self.failures.items()):
            lines += [f"{len(found)} x {title}", *(f"    {one}" for one in found[:5])]
        return "\n".join(lines)


PHASES = ("examples", "coverage", "fuzzing", "stateful")
# The default of schemathesis, and 410: the API finds the version of an answer before it checks other parameters.
_REJECTIONS = [400, 401, 403, 404, 405, 406, 409, 410, 415, 422, 428, 429, "5xx"]


def run(world: World, most_examples: int, *, phases: Collection[str] = PHASES, seed: int = 1) -> Outcome:
    """Run phases over the document against an application on a world, which is changed.

    Args:
        world: data of the application.
        most_examples: of each operation in the phase of random requests; and chains of requests.
        phases: some of `PHASES`.
        seed: of the random requests.
    """
    app = create_app(world.settings)
    outcome = Outcome()
    with closing(_Undo(world)) as undo, asgi.get_client(app) as client:
        # Wrong keys are sent by the thousand.
        app.state.services.refusals.per_address = app.state.services.refusals.in_all = sys.maxsize
        tokens = _Tokens(client, world)
        document = _with_real_values(tokens)
        try:
            # A chain needs the objects that its first requests made.
            for chosen, undoing in ({*phases} - {"stateful"}, undo), ({*phases} & {"stateful"}, None):
                if not chosen:
                    continue
                schema = schemathesis.openapi.from_dict(document, config=_config(most_examples, chosen, seed))
                schema.app = app
                _hook(schema, tokens, undoing)
                for event in from_schema(schema).execute():
                    _note(outcome, event)
        finally:
            asgi.shutdown_lifespans()
    return outcome


def _config(most_examples: int, phases: Collection[str], seed: int) -> SchemathesisConfig:
    return SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "workers": 1,
            "continue-on-failure": True,
            "generation": {"max-examples": most_examples, "database": "none"},
            "phases": {name: {"enabled": name in phases} for name in PHASES},
            "checks": {"negative_data_rejection": {"expected-statuses": _REJECTIONS}},
            "warnings": False,
        }
    )


class _Tokens:
    """Keys and embed tokens that fit an operation."""

    def __init__(self, client: Any, world: World) -> None:
        self._client = client
        self._world = world

    def headers(self, path: str) -> dict[str, str]:
        """Return the credentials of a path; embed tokens are new, since a run revokes them."""
        if path.startswith("/embed/"):
            return {"Authorization": f"Bearer {self.of_report(path)}"}
        return self._world.headers()

    def of_report(self, path: str) -> str:
        """Return an embed token of the report that a path is for, by default of the index."""
        report = (
            "cap-table" if "superset" in path else next((part for part in path.split("/") if part in REPORTS), "index")
        )
        address, query = REPORTS[report]
        answer = self._client.get(address, params=query, headers=self._world.headers())
        return str(answer.json().get("reportUrl", "").partition("#t=")[2])


class _Undo:
    """A copy of the control store, to restore it."""

    def __init__(self, world: World) -> None:
        self._path = world.settings.data_dir / "control.db"
        self._before = sqlite3.connect(":memory:", check_same_thread=False)
        with closing(sqlite3.connect(self._path)) as stored:
            stored.backup(self._before)

    def __call__(self) -> None:
        with closing(sqlite3.connect(self._path, timeout=60)) as stored:
            self._before.backup(stored)

    def close(self) -> None:
        self._before.close()


def _with_real_values(tokens: _Tokens) -> dict[str, Any]:
    """Return the document, in which half of the ids are those of the example data."""
    document = copy.deepcopy(DOCUMENT)
    for path, methods in document["paths"].items():
        for operation in methods.values():
            for one in operation["parameters"]:
                real = [one["example"]] if "example" in one and one["in"] == "path" else _REAL.get(one["name"], [])
                if one["name"] in ("tokenId", "walletId"):
                    real = [one["example"]]
                if real:
                    one["schema"] = {"anyOf": [{"type": "string", "enum": real}, one["schema"]]}
            for content in operation.get("requestBody", {}).get("content", {}).values():
                if path.startswith("/embed/") and "form" in json.dumps(list(operation["requestBody"]["content"])):
                    form = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
                    form["properties"]["token"] = {"type": "string", "enum": [tokens.of_report(path)]}
    for name, described in document["components"]["schemas"].items():
        if name.endswith(("Create", "Put", "Patch")):
            for field_name, real in _REAL.items():
                if field_name in described.get("properties", {}):
                    schema = described["properties"][field_name]
                    described["properties"][field_name] = {"anyOf": [{"enum": real}, schema]}
    return document


def _hook(schema: Any, tokens: _Tokens, undo: _Undo | None) -> None:
    @schema.auth(refresh_interval=None, cache_by_key=lambda case, context: case.path)
    class Credentials:
        def get(self, case: Any, context: Any) -> dict[str, str]:
            return tokens.headers(case.path)

        def set(self, case: Any, data: dict[str, str], context: Any) -> None:
            case.headers.update(data)

    @schema.hook
    def after_call(context: Any, case: Any, response: Any) -> None:
        if undo is not None and case.method not in ("GET", "HEAD") and response.status_code < 300:
            undo()

    @schema.hook
    def filter_failure(context: Any, failure: Any, case: Any, response: Any) -> bool:
        match type(failure).__name__:
            case "RejectedPositiveData":
                return not _codes(response) <= FORESEEN_BY_NO_SCHEMA
            case "UseAfterFree":
                # DELETE cancels an operation, which is read afterwards.
                return "{operationId}" not in case.path
        return True


def _codes(response: Any) -> set[str]:
    """Return the kinds of errors in a problem document: those of its values, else its own."""
    problem = response.json()
    return {error["code"] for error in problem.get("errors", [])} or {problem["code"]}


def _note(outcome: Outcome, event: Any) -> None:
    if isinstance(event, (events.NonFatalError, events.FatalError)):
        error = event.value if isinstance(event, events.NonFatalError) else event.exception
        outcome.errors.append(f"{getattr(event, 'label', '')}: {type(error).__name__}: {error}")
    if not isinstance(event, events.ScenarioFinished):
        return
    outcome.cases[str(event.phase.value)] += len(event.recorder.interactions)
    for interaction in event.recorder.interactions.values():
        if interaction.response is not None:
            outcome.statuses[interaction.response.status_code] += 1
    for title, described in _failures(event.recorder):
        outcome.failures.setdefault(title, []).append(described)


def _failures(recorder: Any) -> Iterator[tuple[str, str]]:
    for case_id, checks in recorder.checks.items():
        for check in checks:
            if check.failure_info is None:
                continue
            failure = check.failure_info.failure
            interaction = recorder.interactions.get(case_id)
            request = interaction.request if interaction else None
            answer = interaction.response if interaction else None
            asked = f"{request.method} {request.uri[:300]} {(request.body or b'')[:300]!r}" if request else ""
            given = f"{answer.status_code} {(answer.content or b'')[:400]!r}" if answer else ""
            yield f"{failure.title}: {recorder.label}", f"{failure.message[:200]!r} | {asked} | {given}"
