"""`ledgermart export`: progress bars and output; `pipelines.deliver.export` writes the files."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from cli.disk import naming_full_disk
from control import tenants
from control.settings import Settings
from control.store import open_store
from pipelines.deliver.export import Format, Listener, export
from warehouse.port import Warehouse
from warehouse.versions import tenant_versions_of


def run_export(
    settings: Settings,
    tenant_name: str,
    form: Format,
    folder: Path | None,
    *,
    marts: tuple[str, ...],
    force: bool,
    console: Console,
) -> dict[str, Any]:
    """Export a tenant's marts, with progress bars where the console is a terminal; return the result for `--json`.

    Raises:
        NotFound: there is no such tenant.
        ExportError, FolderBusyError: as `pipelines.deliver.export.export`.
    """
    with open_store(settings).read() as session:
        tenant = tenants.get_by_name(session, tenant_name)
        identity = (tenant.name, tenant.id)
    if folder is None:
        with Warehouse(settings).open_published() as (_, connection):
            data_version = tenant_versions_of(connection).get(identity[1], 0)
        folder = Path(f"ledgermart-export-{identity[1]}-{data_version}-{form}")
    folder = folder.absolute()
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TaskProgressColumn(), MofNCompleteColumn())
    elapsed = TimeElapsedColumn()
    with (
        naming_full_disk(settings, folder.parent, "name a folder on another disk with --out"),
        Progress(*columns, elapsed, console=console, disable=not console.is_terminal) as bars,
    ):
        all_marts = bars.add_task("marts", total=None)
        one_mart = bars.add_task("", total=100)

        def begins(mart: str, place: int, count: int) -> None:
            bars.update(all_marts, completed=place, total=count)
            bars.reset(one_mart, description=mart, total=100)

        manifest = export(
            settings,
            identity,
            form,
            folder,
            marts=marts,
            force=force,
            listener=Listener(begins, lambda percent: bars.update(one_mart, completed=percent)),
        )
        bars.update(all_marts, completed=len(manifest["files"]))
        bars.remove_task(one_mart)
    files = [{name: file[name] for name in ("mart", "file", "rows")} for file in manifest["files"]]
    return {
        "folder": str(folder),
        **{name: manifest[name] for name in ("dataVersion", "publishedAt", "tenant", "tenantId", "format")},
        "files": files,
    }


def print_export(found: dict[str, Any], console: Console) -> None:
    """Print the files that were written."""
    table = Table("mart", "rows", "file", box=None)
    table.columns[1].justify = "right"
    for file in found["files"]:
        table.add_row(file["mart"], f"{file['rows']:,}", file["file"])
    console.print(table)
    console.print(f"data version {found['dataVersion']} of {found['tenant']} in {found['folder']}")
