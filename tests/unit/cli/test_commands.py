"""Rules of every command: help for people, and one JSON object for programs."""

from collections.abc import Iterator

import click
import pytest

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
