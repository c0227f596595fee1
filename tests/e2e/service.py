"""The service as users start it: the `ledgermart` command on a separate data folder."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from tests.chain.process import free_port, stop_process, tied_to_parent
from tests.e2e.client import ApiClient

LEDGERMART = Path(sys.executable).parent / "ledgermart"
_UP = "ledgermart up"
# The roles of the processes that `ledgermart up` starts, by program.
_ROLES = {
    "pipelines.worker": "worker",
    "dagster": "code server",
    "ledgermart": "API",
    "dagster._daemon": "daemon",
    "cli.dagster_pages": "web server",
}


class ServiceError(Exception):
    """A command failed or the service did not start; the message ends with the end of its output."""


class Service:
    """One installation: a data folder, ports and an environment; a context manager that stops `ledgermart up`.

    Args:
        data_dir: its data folder, created when missing.
        rpc_url: its node.
        extra: environment variables over the defaults made here.
        network: the network of the node, of those that have a local one.
    """

    # Of API and Dagster, where they are free.
    preferred_ports: Sequence[int | None] = (8000, 3000)

    def __init__(
        self, data_dir: Path, rpc_url: str, extra: Mapping[str, str] | None = None, network: str = "local"
    ) -> None:
        data_dir.mkdir(parents=True, exist_ok=True)
        self.log_path = data_dir / "up.log"
        api_port, dagster_port = (free_port(port) for port in self.preferred_ports)
        self.api_url = f"http://127.0.0.1:{api_port}"
        self.dagster_url = f"http://127.0.0.1:{dagster_port}"
        # The caller's own settings and nodes must not leak in: neither real networks nor another data folder.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("LEDGERMART_", "DAGSTER_", "DBT_")) and not name.endswith("_RPC_URL")
        }
        self.environment = {
            **inherited,
            f"{network.upper().replace('-', '_')}_RPC_URL": rpc_url,
            "LEDGERMART_DATA_DIR": str(data_dir),
            "LEDGERMART_API_PORT": str(api_port),
            "LEDGERMART_DAGSTER_PORT": str(dagster_port),
            **(extra or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def run(self, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
        """Run one `ledgermart` command and return its standard output.

        Args:
            arguments: of the command.
            variables: of its environment, over the service's own.

        Raises:
            ServiceError: it is not installed, or exited with another code than 0.
        """
        done = subprocess.run(
            self._command(*arguments),
            env={**self.environment, **(variables or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            printed = (done.stdout + done.stderr)[-4000:]
            raise ServiceError(f"`ledgermart {' '.join(arguments)}` exited with {done.returncode}:\n{printed}")
        return done.stdout

    def init(self, tenant: str) -> str:
        """Initialise the stores and a tenant, and return the tenant's admin key."""
        answer: dict[str, Any] = json.loads(self.run("init", "--tenant", tenant, "--json"))
        return str(answer["apiKey"])

    def start(self, limit_seconds: float = 120) -> None:
        """Start `ledgermart up` and wait until it is ready.

        Raises:
            ServiceError: it ended, or was not ready in time.
        """
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                # Ends cleanly, with everything below it, also when this process is killed.
                tied_to_parent(self._command("up"), "TERM"),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C in a terminal must only reach this process, which stops the service in order.
                start_new_session=True,
            )
        deadline = time.monotonic() + limit_seconds
        with ApiClient(self.api_url) as client:
            while not client.is_ready():
                self.check_running()
                if time.monotonic() > deadline:
                    raise ServiceError(f"not ready within {limit_seconds:.0f} s.\n{self.log_tail()}")
                time.sleep(0.2)

    def check_running(self) -> None:
        """Do nothing while `ledgermart up` runs.

        Raises:
            ServiceError: it ended.
        """
        if self._process is not None and self._process.poll() is not None:
            raise ServiceError(f"`ledgermart up` exited with {self._process.returncode}.\n{self.log_tail()}")

    @property
    def is_running(self) -> bool:
        """True if `ledgermart up` was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Return `ledgermart up` and its children by role, each child with those that it started.

        Processes that are only starting, or have ended, are left out.
        """
        if self._process is None or not self.is_running:
            return {}
        up = psutil.Process(self._process.pid)
        roles = {_UP: [up]}
        for child in up.children():
            try:
                # The first word is the interpreter; modules follow `-m`.
                programs = [Path(word).name for word in child.cmdline()[:3]]
                for program in _ROLES.keys() & programs:
                    roles[_ROLES[program]] = [child, *child.children(recursive=True)]
            except psutil.NoSuchProcess:
                continue
        return roles

    def log_tail(self, lines: int = 20) -> str:
        """Return the last lines that `ledgermart up` and its parts printed, each under the name of its file."""
        tails = []
        for path in (self.log_path, *sorted((self.log_path.parent / "logs").glob("*.log"))):
            if path.is_file():
                tail = path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
                tails.extend([f"last lines of {path}:", *tail])
        return "\n".join(tails)

    def stop(self, grace_seconds: float = 30) -> int | None:
        """Stop `ledgermart up` by a signal and return its exit code; None when it was not running."""
        process, self._process = self._process, None
        return None if process is None else stop_process(process, grace_seconds)

    def _command(self, *arguments: str) -> list[str]:
        if not LEDGERMART.is_file():
            raise ServiceError(f"the `ledgermart` command is not installed beside {sys.executable}: run `make install`")
        return [str(LEDGERMART), *arguments]
