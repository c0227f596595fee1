"""Rules of every command: help for people, and one JSON object for programs."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli.main import main

# They run until stopped, or print only JSON.
_WITHOUT_JSON = {"up", "api", "worker", "openapi"}


def _commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, f"{prefix}{name} ")
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield f"{prefix}{name}", command


_ALL = dict(_commands(main))


def test_list_of_commands_is_complete() -> None:
    known = {"init", "key create", "key list", "key revoke", "cycle", "backfill", "status", "export", "report"}
    known |= {"network reset", "doctor", "backup", "restore", "sandbox", "sandbox list", "sandbox remove"}
    known |= {"tenant create", "tenant list", "tenant move", "tenant quotas", "network check"}
    known |= {"migrate-warehouse lake", "migrate-warehouse back", "lake orphans"}
    assert known | _WITHOUT_JSON == _ALL.keys()


@pytest.mark.parametrize("name", _ALL)
def test_every_command_and_option_has_help_and_json_output(name: str) -> None:
    command = _ALL[name]
    assert command.help
    options = {option: parameter for parameter in command.params for option in parameter.opts}
    assert ("--json" in options) == (name not in _WITHOUT_JSON)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name}: {parameter.opts[0]} has no help"


@pytest.mark.parametrize("options", [["--help"], ["-h"], ["--no-such-option"]])
@pytest.mark.parametrize("name", ["", "tenant", "lake", *_ALL])
def test_help_and_unknown_options_change_nothing_in_the_data_folder(
    name: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(tmp_path))
    done = CliRunner().invoke(main, [*name.split(), *options])
    assert done.exit_code == (2 if options == ["--no-such-option"] else 0), done.output
    assert (tmp_path.stat().st_mode & 0o777, list(tmp_path.iterdir())) == (0o755, [])


def test_help_is_shown_despite_a_malformed_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGERMART_API_PORT", "eighty")
    done = CliRunner().invoke(main, ["status", "--help"])
    assert (done.exit_code, "Usage:" in done.output) == (0, True)
