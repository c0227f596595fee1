"""The wheel in an environment and a home of its own: it starts, without the checkout and without writing to itself."""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from control.resources import REPORTS
from pipelines.defs.fingerprints import project_fingerprint
from tests import CHECKOUT
from tests.chain.process import free_port, stop_process, tied_to_parent
from tests.waiting import eventually

# Every interpreter of the environment runs it at start. Events have no path for descriptors.
_WATCH = """
import os, sys

def watch(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], (str, bytes, os.PathLike)):
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path.startswith({checkout!r}) and not path.startswith({packages!r}):
            with open({log!r}, "a") as log:
                print(event, path, file=log)

sys.addaudithook(watch)
"""
_ASK = """
import json, sys
import api, cli, control, figures, ledgermart, pipelines, warehouse
from pipelines.defs.fingerprints import project_fingerprint

packages = (api, cli, control, figures, ledgermart, pipelines, warehouse)
print(json.dumps({"files": [package.__file__ for package in packages], "dbt": project_fingerprint()}))
"""


@dataclass(frozen=True)
class Installation:
    """An environment with the wheel, an empty home, and an empty folder to work in."""

    environment: Path
    packages: Path
    home: Path
    folder: Path
    checkout_log: Path
    ports: tuple[int, int]

    def command(self, program: str, *arguments: str) -> list[str]:
        """Return a command of the environment that sees an empty home and no variable of this process."""
        variables = {
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            "LEDGERMART_API_PORT": str(self.ports[0]),
            "LEDGERMART_DAGSTER_PORT": str(self.ports[1]),
        }
        started = ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]
        return tied_to_parent([*started, str(self.environment / "bin" / program), *arguments], "TERM")

    def run(self, program: str, *arguments: str) -> str:
        """Return the standard output of a program, which must succeed."""
        command = self.command(program, *arguments)
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def up(self) -> Iterator[None]:
        """Run `ledgermart up`."""
        process = subprocess.Popen(self.command("ledgermart", "up"), cwd=self.folder, stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            code = stop_process(process, grace_seconds=60)
        assert code == 0

    def files(self) -> dict[Path, tuple[int, int]]:
        """Size and time of change of each installed file."""
        found = ((path, path.stat()) for path in self.packages.rglob("*") if path.is_file())
        return {path: (status.st_size, status.st_mtime_ns) for path, status in found}


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Build the wheel and install it beside the packages that the project installed, but not beside the checkout."""
    parent = tmp_path_factory.mktemp("wheel")
    environment, home, folder = parent / "env", parent / "home", parent / "folder"
    home.mkdir()
    folder.mkdir()

    def run(*arguments: object) -> None:
        subprocess.run([sys.executable, "-m", *map(str, arguments)], cwd=CHECKOUT, check=True)

    run("hatchling", "build", "-t", "wheel", "-d", parent)
    run("venv", "--without-pip", environment)
    (wheel,) = parent.glob("*.whl")
    run("pip", "--python", environment / "bin" / "python", "install", "--quiet", "--no-deps", "--no-index", wheel)
    (packages,) = environment.glob("lib/python*/site-packages")
    # Python ignores .pth files in a folder that a .pth file names, so the editable installation has no effect here.
    third_party = sysconfig.get_path("purelib")
    log = parent / "checkout.log"
    (packages / "third_party.pth").write_text(f"{third_party}\nimport watch_checkout\n")
    (packages / "watch_checkout.py").write_text(
        _WATCH.format(checkout=f"{CHECKOUT}/", packages=third_party, log=str(log))
    )
    return Installation(environment, packages, home, folder, log, (free_port(), free_port()))


def body(port: int, path: str) -> bytes | None:
    """Return the body of a page; None while its server does not listen."""
    with suppress(URLError), urlopen(f"http://127.0.0.1:{port}{path}") as response:
        return bytes(response.read())
    return None


@pytest.mark.release
def test_wheel_starts_in_empty_home_and_writes_to_data_folder_alone(installation: Installation) -> None:
    installed = json.loads(installation.run("python", "-c", _ASK))
    assert {Path(file).parents[1] for file in installed["files"]} == {installation.packages}
    assert installed["dbt"] == project_fingerprint()
    before = installation.files()
    installation.run("python", "-c", f"open({str(CHECKOUT / 'README.md')!r})")
    installation.checkout_log.unlink()  # it is watched

    installation.run("ledgermart", "init", "--tenant", "first")
    assert "the pages of the reports are built" in installation.run("ledgermart", "doctor")
    data = installation.home / ".local" / "share" / "ledgermart"
    api, dagster = installation.ports
    with installation.up():
        eventually(lambda: body(api, "/openapi.json") is not None, "the API answers")
        script = next((REPORTS / "assets").glob("*.js"))
        assert body(api, f"/embed/assets/{script.name}") == script.read_bytes()
        for name in ("", "/swagger-ui.css", "/swagger-ui-bundle.js", "/favicon-32x32.png"):
            assert body(api, f"/docs{name}")
        eventually(lambda: body(dagster, "/server_info") is not None, "Dagster's pages answer")
        eventually((data / "serving" / "marts-000000000002.duckdb").exists, "the worker publishes the tenant")

    assert list(installation.home.iterdir()) == [installation.home / ".local"]
    assert list(installation.folder.iterdir()) == []
    assert installation.files() == before
    assert not installation.checkout_log.exists(), installation.checkout_log.read_text()
