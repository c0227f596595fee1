"""Superset as `make superset` starts it, for one world, and its guests."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

import httpx
import jwt

from api.reports.superset import AUDIENCE, FRAME_AUDIENCE
from control import service_secrets
from tests import CHECKOUT
from tests.api.world import World
from tests.browser.configured import LUMEN_ID, TREASURY_ID
from tests.waiting import PATIENCE_SECONDS

LAUNCHER = CHECKOUT / "bi" / "superset" / "run.py"
SUBJECTS = {"cap-table": LUMEN_ID, "wallet-activity": TREASURY_ID}


class SupersetFailed(Exception):
    """Superset did not come up; the message has the end of its log."""


def launcher() -> ModuleType:
    """Load `bi/superset/run.py`, which is no package."""
    spec = importlib.util.spec_from_file_location("superset_launcher", LAUNCHER)
    if spec is None or spec.loader is None:
        raise SupersetFailed(f"{LAUNCHER} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Superset:
    """A separate Superset process; a context manager.

    Args:
        world: the world with Superset's data directory and `superset_url`.
        public_url: origin of the API's pages.
        log: file for its output.
    """

    def __init__(self, world: World, public_url: str, log: Path) -> None:
        self.world = replace(world, settings=replace(world.settings, public_url=public_url))
        self.url = world.settings.superset_url
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        settings = self.world.settings
        variables = {
            "LEDGERMART_DATA_DIR": str(settings.data_dir),
            "LEDGERMART_NETWORKS": str(settings.networks_file),
            "LEDGERMART_PUBLIC_URL": settings.public_origin,
            "LEDGERMART_SUPERSET_URL": self.url,
            "LEDGERMART_REPORTS_PROVIDER": "superset",
        }
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, LAUNCHER],
                env={**os.environ, **variables},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._is_healthy():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__(None, None, None)
                raise SupersetFailed(f"Superset did not start:\n{self.log()[-4000:]}")
            time.sleep(0.2)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)

    def log(self) -> str:
        """Return its output."""
        return self._log.read_text()

    @property
    def pid(self) -> int:
        """Id of its first process."""
        if self._process is None:
            raise SupersetFailed("Superset is not started")
        return self._process.pid

    @property
    def folder(self) -> Path:
        """Its metadata."""
        return self.world.settings.data_dir / "superset"

    @property
    def key(self) -> str:
        """The secret of guest tokens."""
        with self.world.store.read() as session:
            return service_secrets.get(session, service_secrets.SUPERSET_GUEST_KEY).hex()

    def provisioned(self, report: str) -> dict[str, Any]:
        """Return the result of provisioning for a report."""
        told: dict[str, Any] = json.loads((self.folder / "provisioned.json").read_text())["dashboards"][report]
        return told

    def frame(self, *origins: str) -> str:
        """Sign the grant of those who may frame a dashboard."""
        now = int(time.time())
        claims = {"aud": FRAME_AUDIENCE, "origins": list(origins), "iat": now, "exp": now + 300}
        return jwt.encode(claims, self.key, algorithm="HS256")

    def claims(self, tenant_id: str, report: str = "cap-table", **changes: Any) -> dict[str, Any]:
        """Return the claims of a guest token as the API makes them for the market's token or wallet, with changes."""
        told, now = self.provisioned(report), int(time.time())
        subject = self.world.subject_keys[SUBJECTS[report]]
        rules: list[dict[str, Any]] = [{"clause": f"tenant_id = '{tenant_id}'"}]
        if tenant_id == self.world.tenant_id:
            rules += [{"dataset": each["id"], "clause": f"subject_key = {subject}"} for each in told["datasets"]]
        return {
            "type": "guest",
            "aud": AUDIENCE,
            "user": {"username": tenant_id, "first_name": "Guest", "last_name": "Guest"},
            "resources": [{"type": "dashboard", "id": told["embeddedId"]}],
            "rls_rules": rules,
            "iat": now,
            "exp": now + 300,
        } | changes

    def guest(self, claims: Mapping[str, Any] | str) -> "Guest":
        """Return a guest with a token of these claims."""
        token = claims if isinstance(claims, str) else jwt.encode(dict(claims), self.key, algorithm="HS256")
        return Guest(self.url, token)

    def _is_healthy(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=PATIENCE_SECONDS).status_code == 200
        except httpx.TransportError:
            return False


class Guest:
    """Client of Superset that sends a page's requests, and others."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self.headers = {"X-GuestToken": token}

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Send one request on a new connection."""
        return httpx.request(method, f"{self._url}{path}", json=body, headers=self.headers, timeout=PATIENCE_SECONDS)

    def dashboard(self, embedded_id: str) -> httpx.Response:
        """Request an embedded dashboard."""
        return self.ask("GET", f"/api/v1/embedded_dashboard/{embedded_id}")

    def charts(self, embedded_id: str) -> dict[str, dict[str, Any]]:
        """Return a dashboard's charts by name: `chart`, `dashboard` and `dataset` are the ids that queries need."""
        dashboard = int(self.dashboard(embedded_id).json()["result"]["dashboard_id"])
        found = self.ask("GET", f"/api/v1/dashboard/{dashboard}/charts").json()["result"]
        return {
            each["slice_name"]: {
                "chart": each["id"],
                "dashboard": dashboard,
                "dataset": int(each["form_data"]["datasource"].partition("__")[0]),
            }
            for each in found
        }

    def query(self, chart: Mapping[str, Any], columns: list[Any], **query: Any) -> httpx.Response:
        """Query a chart's dataset as a changed page would."""
        form = query.pop("form_data", {"dashboardId": chart["dashboard"], "slice_id": chart["chart"]})
        kind, form_format = query.pop("result_type", "full"), query.pop("result_format", "json")
        return self.ask(
            "POST",
            "/api/v1/chart/data",
            {
                "datasource": {"id": query.pop("dataset", chart["dataset"]), "type": "table"},
                "queries": [{"columns": columns, "metrics": [], "row_limit": 5000} | query],
                "result_type": kind,
                "result_format": form_format,
                "form_data": form,
            },
        )


def rows_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return the rows of a successful query."""
    if answer.status_code != 200:
        raise AssertionError(f"{answer.status_code}: {answer.text[:1000]}")
    rows: list[dict[str, Any]] = answer.json()["result"][0]["data"]
    return rows
