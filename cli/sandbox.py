"""`ledgermart sandbox`: its progress bar and tables; what a sandbox is, is in `pipelines.deliver.sandbox`."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from cli.environment import age
from control.settings import Settings
from pipelines.deliver.sandbox import Sandbox, make_sandbox
from warehouse.copies import Listener


def run_sandbox(settings: Settings, folder: Path, *, refresh: bool, console: Console) -> Sandbox:
    """Make a sandbox, and show who is waited for and how far the copy is.

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
                waits=lambda holder: console.print(f"waiting until no cycle is at work: {holder}"),
                begins=lambda size: bars.update(task, total=size),
                copied=lambda size: bars.advance(task, size),
            ),
        )


def print_sandbox(made: Sandbox, console: Console) -> None:
    """Print where a sandbox is and how to use it, for people."""
    console.print(f"version {made.version} in {made.folder}\n")
    console.print(f"source {made.folder / 'environment.sh'}\ncd dbt_project && dbt build --select MODEL")


def print_sandboxes(found: list[Sandbox], console: Console) -> None:
    """Print all sandboxes, for people."""
    table = Table("sandbox", "version", "age", "folder", box=None)
    for one in found:
        table.add_row(one.name, str(one.version), age(one.created_at), str(one.folder))
    console.print(table)
