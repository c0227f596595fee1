"""Texts from nodes, files and users cannot control the terminal."""

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli import main as commands
from cli.cycle import CycleResult
from cli.doctor import Diagnosis, NodeCheck, print_diagnosis
from cli.export import print_export, print_raw_export
from cli.status import print_status
from cli.terminal import Terminal, plain, plain_line
from control.errors import ControlError
from control.settings import load_settings
from tests.templates import open_migrated

HOSTILE = (
    "\x1b[31mred\x1b[0m \x00nul \u202eright-to-left \u2066isolate \u200bwidth \x9b2Jclear \x85 \ud800 "
    "\x1b]0;title\x07 é 漢"
)
SHOWN = "red nul right-to-left isolate width clear   ]0;title é 漢"


def test_a_text_keeps_its_letters_and_loses_control_and_hidden_characters() -> None:
    assert plain(HOSTILE) == SHOWN
    assert plain("a\n\tb\r\n") == "a\n\tb\n"
    assert plain_line("a\nb") == "a b"


def shown(print_it: object) -> str:
    """Return the output in a terminal."""
    told = io.StringIO()
    print_it(Terminal(file=told, highlight=False, soft_wrap=True, width=2000))  # type: ignore[operator]
    return told.getvalue()


def test_status_doctor_and_export_print_no_control_characters() -> None:
    network = {"network": "local", "status": "Unhealthy", "detail": HOSTILE + "\nsecond", "tokens": 1, "wallets": 0}
    network |= {"tracked": 1, "head": 1, "collectedTo": 1, "requests": None, "lake": None}
    source = {"priceSource": HOSTILE, "polledAt": None, "prices": 0, "problems": 0, "error": HOSTILE}
    status = {"isInitialised": True, "networks": [network], "operations": [], "priceSources": [source]}
    status |= {"version": None, "versionMegabytesMissing": 0, "shards": [], "writer": HOSTILE}
    status |= {"worker": {"lookedAt": "2026-01-01T00:00:00+00:00", "trouble": HOSTILE}}
    node = NodeCheck("local", 1, HOSTILE, detail=HOSTILE)
    exported = {"files": [], "dataVersion": 1, "tenant": HOSTILE, "folder": HOSTILE}
    raw = {"files": [], "network": HOSTILE, "folder": HOSTILE, "form": "ledgermart", "pattern": HOSTILE}
    raw |= {"firstBlock": 1, "lastBlock": 2}
    for text in (
        shown(lambda console: print_status(status, console)),
        shown(lambda console: print_diagnosis(Diagnosis([], [node]), console)),
        shown(lambda console: print_export(exported, console)),
        shown(lambda console: print_raw_export(raw, console)),
    ):
        assert SHOWN in text
        assert plain(text) == text
    assert f"{SHOWN} second" in shown(lambda console: print_status(status, console))


def test_a_style_still_reaches_the_terminal() -> None:
    told = io.StringIO()
    Terminal(file=told, force_terminal=True).print("\x1b[32mwarning", style="red", markup=False)
    assert told.getvalue() == "\x1b[31mwarning\x1b[0m\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of commands in this process."""
    for variable in ("DAGSTER_HOME", "LEDGERMART_DAGSTER_DIR", "LEDGERMART_CODE_SERVER_SOCKET"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def test_error_of_a_cycle_is_one_plain_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = CycleResult(3, f"local: {HOSTILE}\n[/nothing] second line", None, None, is_new_version=False)
    monkeypatch.setattr("cli.cycle.run_cycle", lambda *_, **__: result)
    folder.mkdir(mode=0o700)
    open_migrated(load_settings({"LEDGERMART_DATA_DIR": str(folder)})).close()
    done = CliRunner().invoke(commands.main, ["cycle"])
    assert (done.exit_code, done.stderr) == (3, f"local: {SHOWN} [/nothing] second line\n")
    done = CliRunner().invoke(commands.main, ["cycle", "--json"])
    assert json.loads(done.stdout)["error"] == result.error
    assert done.stdout.isascii()


def test_error_with_foreign_text_is_plain(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ControlError(f"there is no {HOSTILE}\nnothing")

    monkeypatch.setattr("cli.status.read_status", fail)
    done = CliRunner().invoke(commands.main, ["status"])
    assert done.exit_code == 2
    assert done.stderr.endswith(f"there is no {SHOWN} nothing\n")
