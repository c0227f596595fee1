"""`ledgermart sandbox`: progress bar and output; `pipelines.deliver.sandbox` makes the sandboxes."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from cli.copying import copy_progress
from cli.environment import age
from control.settings import Settings
from pipelines.deliver.sandbox import Sandbox, make_sandbox


def run_sandbox(settings: Settings, folder: Path, *, refresh: bool, console: Console) -> Sandbox:
    """Make a sandbox, and show the cycle that it waits for and the progress of the copy.

    Raises:
        SandboxError, FolderBusyError: as `pipelines.deliver.sandbox.make_sandbox`.
    """
    with copy_progress(console) as listener:
        return make_sandbox(settings, folder, refresh=refresh, listener=listener)


def print_sandbox(made: Sandbox, console: Console) -> None:
    """Print the folder of a sandbox and how to use it."""
    console.print(f"version {made.version} in {made.folder}\n")
    console.print(f"source {made.folder / 'environment.sh'}\ncd dbt_project && dbt build --select MODEL")


def print_sandboxes(found: list[Sandbox], console: Console) -> None:
    """Print all sandboxes as a table."""
    table = Table("sandbox", "version", "age", "folder", box=None)
    for one in found:
        table.add_row(one.name, str(one.version), age(one.created_at), str(one.folder))
    console.print(table)
