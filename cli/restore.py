"""`ledgermart restore`: progress and output; `pipelines.deliver.restore` restores the backup."""

from pathlib import Path

from rich.console import Console

from cli.copying import copy_progress
from cli.data_folder import check_writable
from control.settings import Settings
from pipelines.deliver.restore import Restored, restore


def run_restore(settings: Settings, folder: Path, *, set_aside: bool, console: Console) -> Restored:
    """Restore a backup, with its progress.

    Raises:
        BackupError, WriterBusyError, StoreUnavailable: as `restore`.
    """
    check_writable(settings)
    with copy_progress(console) as listener:
        return restore(settings, folder, listener, set_aside=set_aside)


def print_restored(done: Restored, settings: Settings, console: Console) -> None:
    """Print the restored backup, the new names of former data, and the next step."""
    if done.was_interrupted:
        console.print("completed a restore that was interrupted")
    backup = f"{done.folder} (of {done.created_at:%Y-%m-%d %H:%M} UTC, version {done.version})"
    console.print(f"restored {backup} into {settings.data_dir}", markup=False)
    for path in done.aside:
        console.print(f"former data: {path}", markup=False)
    console.print("\nNext: start the service, or run `ledgermart cycle`; it publishes a version in a new epoch")
