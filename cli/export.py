"""`ledgermart export`: progress bars and output; `pipelines.deliver.export` and `raw_export` write the files."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from cli.disk import naming_full_disk
from control import tenants
from control.networks.in_force import networks_in_force
from control.settings import Settings
from control.store import open_store
from pipelines.deliver.export import ExportError, Format, Listener, export
from warehouse import copies
from warehouse.port import Warehouse
from warehouse.versions import tenant_versions_of

_OTHER_DISK = "name a folder on another disk with --out"


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
        ExportError: the tenant is in another shard.
        ExportError, FolderBusyError: as `pipelines.deliver.export.export`.
    """
    with open_store(settings).read() as session:
        tenant = tenants.get_by_name(session, tenant_name)
        identity = (tenant.name, tenant.id)
    if tenant.shard != settings.shard:
        raise ExportError(
            f"tenant {tenant.name} is in shard {tenant.shard}, and {settings.data_dir} has the marts of shard "
            f"{settings.shard}; run the command with LEDGERMART_SHARD and the data folder of shard {tenant.shard}"
        )
    if folder is None:
        with Warehouse(settings).open_published() as (_, connection):
            data_version = tenant_versions_of(connection).get(identity[1], 0)
        folder = Path(f"ledgermart-export-{identity[1]}-{data_version}-{form}")
    folder = folder.absolute()
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TaskProgressColumn(), MofNCompleteColumn())
    elapsed = TimeElapsedColumn()
    with (
        naming_full_disk(settings, folder.parent, _OTHER_DISK),
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


def run_raw_export(
    settings: Settings, network_name: str, folder: Path | None, *, force: bool, console: Console
) -> dict[str, Any]:
    """Export the raw facts of a network, with progress bars where the console is a terminal; return the result.

    Raises:
        ExportError: the network is not defined, or as `pipelines.deliver.raw_export.export_raw`.
        FolderError, FolderBusyError, DamagedFileError: as `export_raw`.
    """
    # It imports web3, which other exports do not need.
    from pipelines.deliver.raw_export import export_raw

    networks = networks_in_force(settings)
    if network_name not in networks:
        raise ExportError(f"network {network_name!r} is not defined; there are {', '.join(networks)}")
    folder = (folder or Path(f"ledgermart-raw-{network_name}")).absolute()
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TaskProgressColumn(), TimeElapsedColumn())
    with (
        naming_full_disk(settings, folder.parent, _OTHER_DISK),
        Progress(*columns, console=console, disable=not console.is_terminal) as bars,
    ):
        copy, files = bars.add_task("copying the warehouse", total=None), bars.add_task("files", total=None)
        copying = copies.Listener(
            waits=lambda holder: console.print(f"waiting for the running cycle: {holder}", markup=False),
            begins=lambda size: bars.update(copy, total=size),
            copied=lambda size: bars.advance(copy, size),
        )
        manifest = export_raw(
            settings,
            networks[network_name],
            folder,
            force=force,
            copying=copying,
            begins=lambda file, place, count: bars.update(files, description=file, completed=place, total=count),
        )
        bars.update(files, description="files", completed=len(manifest["files"]))
    shown = ("network", "form", "finalBlock", "firstBlock", "lastBlock", "files")
    return {
        "folder": str(folder),
        "pattern": str(folder / manifest["pattern"]),
        **{name: manifest[name] for name in shown},
    }


def print_raw_export(found: dict[str, Any], console: Console) -> None:
    """Print the rows of each table, and the definition of a data set of the files."""
    files: dict[str, list[int]] = defaultdict(list)
    for file in found["files"]:
        files[file["table"]].append(file["rows"])
    table = Table("table", "rows", "files", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, rows in files.items():
        table.add_row(name, f"{sum(rows):,}", f"{len(rows):,}")
    console.print(table)
    blocks = f"blocks {found['firstBlock']} to {found['lastBlock']}"
    console.print(f"{blocks} of {found['network']} in {found['folder']}", markup=False)
    console.print(f'Data set: form = "{found["form"]}", files = {json.dumps(found["pattern"])}', markup=False)
