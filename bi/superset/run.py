"""Start Superset for embedded reports: `make superset`.

This runs in the service's environment, because it reads the settings and the control store. Superset itself runs in its
own environment (`build/superset/venv`), and gets its configuration by environment variables alone. With arguments, this
runs them as a command there, such as `python bi/superset/run.py superset fab create-admin`.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from control import service_secrets
from control.errors import ControlError
from control.settings import Settings, SettingsError, load_settings
from control.store import open_store

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parents[1] / "build" / "superset" / "venv" / "bin"
WORKERS, THREADS = 2, 8
"""One worker takes about 285 MiB."""


class NotReadyError(Exception):
    """Superset cannot start; the message has the reason and the fix."""


def main(arguments: list[str]) -> int:
    """Provision and serve, or run a command in Superset's environment; returns the exit code."""
    try:
        settings = load_settings()
        folder = superset_folder(settings)
        folder.mkdir(parents=True, exist_ok=True)
        variables = superset_variables(settings, folder / "superset.db")
        if arguments:
            command = [str(ENVIRONMENT / arguments[0]), *arguments[1:]]
        else:
            with provisioning_lock(folder):
                provision(settings, folder)
            command = server_command(settings)
    except (NotReadyError, SettingsError, ControlError, subprocess.CalledProcessError) as error:
        print(f"superset: {error}", file=sys.stderr)  # noqa: T201
        return 2
    os.execve(command[0], command, variables)  # nosec B606 # a command of this file


def superset_folder(settings: Settings) -> Path:
    """Return the folder of Superset's metadata and of `provisioned.json`."""
    return settings.data_dir / "superset"


def provision(settings: Settings, folder: Path) -> None:
    """Import the assets into the metadata.

    A failed migration cannot be rolled back in SQLite. So the first migrations run in a temporary file, which gets its
    name at the end.

    Raises:
        NotReadyError: nothing is published yet.
        CalledProcessError: Superset refused; its messages are on the terminal.
    """
    marts = settings.serving_dir / "current.duckdb"
    if not marts.exists():
        raise NotReadyError(f"{marts} does not exist; run `ledgermart init --tenant NAME` first")
    metadata, beside = folder / "superset.db", folder / "superset.db.new"
    is_new = not metadata.exists()
    beside.unlink(missing_ok=True)
    subprocess.run(
        [ENVIRONMENT / "python", HERE / "provision.py", marts, settings.public_origin, folder / "provisioned.json"],
        env=superset_variables(settings, beside if is_new else metadata),
        check=True,
    )
    if is_new:
        beside.replace(metadata)


def superset_variables(settings: Settings, metadata: Path) -> dict[str, str]:
    """Return the environment of Superset's processes: the inherited one without this service's variables, since some
    are secrets, and with Superset's own variables.

    Raises:
        NotReadyError: Superset is not installed.
        StoreUnavailable: the control store is not there or too old.
    """
    if not (ENVIRONMENT / "superset").exists():
        raise NotReadyError("Superset is not installed; run `make build/superset/installed`")
    store = open_store(settings)
    try:
        with store.read() as session:
            secret = service_secrets.get(session, service_secrets.SUPERSET_SECRET_KEY)
            guests = service_secrets.get(session, service_secrets.SUPERSET_GUEST_KEY)
    finally:
        store.close()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGERMART_", "PYTHON"))}
    return inherited | {
        "FLASK_APP": "superset.app:create_app()",
        "PYTHONPATH": str(HERE),
        "SCARF_ANALYTICS": "false",
        "SUPERSET_CONFIG_PATH": str(HERE / "superset_config.py"),
        "SUPERSET_HOME": str(metadata.parent),
        "SUPERSET_METADATA_URL": f"sqlite:///{metadata}",
        "SUPERSET_OWN_URL": settings.superset_url,
        "SUPERSET_SECRET_KEY": secret.hex(),
        "SUPERSET_GUEST_KEY": guests.hex(),
    }


def server_command(settings: Settings) -> list[str]:
    """Return the command that serves Superset on loopback; a reverse proxy publishes it under its own origin."""
    port = urlsplit(settings.superset_url).port if "127.0.0.1" in settings.superset_url else None
    return [
        str(ENVIRONMENT / "gunicorn"),
        *("--bind", f"127.0.0.1:{port or 8088}"),
        *("--workers", str(WORKERS), "--worker-class", "gthread", "--threads", str(THREADS)),
        # No limit on URLs: the URL of a frame contains its tenant's origins, up to fifty of them.
        *("--timeout", "120", "--limit-request-line", "0", "--no-control-socket"),
        "superset.app:create_app()",
    ]


@contextmanager
def provisioning_lock(folder: Path) -> Iterator[None]:
    """Hold the lock that prevents two processes from provisioning at once."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise NotReadyError("another process is provisioning Superset; wait until it is done") from error
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
