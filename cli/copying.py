"""Progress of copies of the warehouse: a bar in a terminal, and the cycle that a copy waits for."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from warehouse.copies import Listener


@contextmanager
def copy_progress(console: Console) -> Iterator[Listener]:
    """Show the progress of a copy while the block runs."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        task = bars.add_task("copying", total=None)
        yield Listener(
            waits=lambda holder: console.print(f"waiting for the running cycle: {holder}", markup=False),
            begins=lambda size: bars.update(task, total=size),
            copied=lambda size: bars.advance(task, size),
        )
