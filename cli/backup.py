"""`ledgermart backup`: progress and output; `pipelines.deliver.backup` makes the backup."""

from pathlib import Path

from rich.console import Console

from cli.copying import copy_progress
from control.settings import Settings
from pipelines.deliver.backup import Backup, make_backup


def run_backup(settings: Settings, folder: Path, console: Console) -> Backup:
    """Make a backup, and show the cycle that it waits for and its progress.

    Raises:
        BackupError, FolderBusyError, DamagedFileError, StoreUnavailable: as `make_backup`.
    """
    with copy_progress(console) as listener:
        return make_backup(settings, folder, listener)


def print_backup(made: Backup, console: Console) -> None:
    """Print folder, files and size."""
    names = ", ".join(file.name for file in made.files)
    console.print(f"backup in {made.folder}: {names}; {made.bytes:,} bytes", markup=False)
