"""`ledgermart sandbox`: progress bar and output; `pipelines.deliver.sandbox` makes the sandboxes."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from cli.environment import age
from control.settings import Settings
from pipelines.deliver.sandbox import Sandbox, make_sandbox
from warehouse.copies import Listener


def run_sandbox(settings: Settings, folder: Path, *, refresh: bool, console: Console) -> Sandbox:
    """Make a sandbox, and show the cycle that it waits for and the progress of the copy.

    Raises:
        SandboxError, FolderBusyError: as `pipelines.deliver.sandbox.make_sandbox`.
    """
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        task = bars.add_task("copying", total=None)
        return make_sandbox(
            settings,
            folder,
            refresh=refresh,
            listener=Listener(
                waits=lambda holder: console.print(f"waiting for the running cycle: {holder}"),
                begins=lambda size: bars.update(task, total=size),
                copied=lambda size: bars.advance(task, size),
            ),
        )


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
