"""Dagster's web server as its pages use it: runs are launched, cancelled and looked up over GraphQL."""

from typing import Any

import urllib3

from tests.waiting import PATIENCE_SECONDS

_LOCATIONS = """
query { workspaceOrError { ... on Workspace { locationEntries { name locationOrLoadError {
  ... on RepositoryLocation { repositories { name } } } } } } }
"""
_LAUNCH = """
mutation ($selector: JobOrPipelineSelector!) {
  launchRun(executionParams: {selector: $selector, runConfigData: {}}) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }
"""
_CANCEL = """
mutation ($id: String!) { terminateRun(runId: $id) { __typename } }
"""
_RUNS = """
query ($filter: RunsFilter!) {
  runsOrError(filter: $filter) { ... on Runs { results { runId status tags { key value } } } }
}
"""


class DagsterPages:
    """A client of Dagster's web server.

    Args:
        url: of the server, without a path.
    """

    def __init__(self, url: str) -> None:
        self._url = f"{url}/graphql"

    def launch(self, job: str) -> str:
        """Launch a job with no configuration, and return the run's id."""
        location, repository = self._repository()
        selector = {"repositoryLocationName": location, "repositoryName": repository["name"], "jobName": job}
        launched = self._ask(_LAUNCH, selector=selector)["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def cancel(self, run_id: str) -> None:
        """Have a run terminated."""
        answer = self._ask(_CANCEL, id=run_id)["terminateRun"]
        assert answer["__typename"] == "TerminateRunSuccess", answer

    def status(self, run_id: str) -> str:
        """Return the status of a run, such as `STARTED`."""
        (run,) = self.runs(runIds=[run_id])
        return str(run["status"])

    def runs(self, **filters: Any) -> list[dict[str, Any]]:
        """Return id, status and tags of the runs that a `RunsFilter` selects."""
        found: list[dict[str, Any]] = self._ask(_RUNS, filter=filters)["runsOrError"]["results"]
        return found

    def _repository(self) -> tuple[str, dict[str, Any]]:
        """Return the name of the one code location, and its one repository."""
        (entry,) = self._ask(_LOCATIONS)["workspaceOrError"]["locationEntries"]
        (repository,) = entry["locationOrLoadError"]["repositories"]
        return entry["name"], repository

    def _ask(self, query: str, **variables: Any) -> dict[str, Any]:
        asked = {"query": query, "variables": variables}
        reply = urllib3.request("POST", self._url, json=asked, retries=False, timeout=PATIENCE_SECONDS)
        answer = reply.json()
        assert "errors" not in answer, answer["errors"]
        data: dict[str, Any] = answer["data"]
        return data
