"""Commands and their options; the modules that they call do the work."""

import json
import os
import re
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cli import environment
from cli.data_folder import check_socket, check_writable
from cli.disk import full_disk_sentence, is_disk_full
from cli.exit_codes import EXIT_BUSY, EXIT_FAILED
from cli.stores import check_exists, lost_beside_warehouse, open_existing
from cli.tables import print_rows
from cli.terminal import Terminal, plain_line
from control import access, quotas, tenants
from control.errors import ControlError, StoreLost, StoreUnavailable
from control.networks.definitions import NetworksError
from control.networks.in_force import networks_in_force
from control.pricing.definitions import PriceSourcesError
from control.settings import HIGHEST_QUOTA, HIGHEST_SHARD, Settings, SettingsError, load_settings
from control.store import open_store
from pipelines.deliver.restore import check_finished
from warehouse.damage import DamagedFileError
from warehouse.folders import FolderError
from warehouse.lock import WriterBusyError

if TYPE_CHECKING:
    from api.reports.schemas.links import Theme
    from cli.cycle import CycleResult

_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
_DEFAULT = "default"
_EXPORTS = ("parquet", "csv", "xlsx")
_folder = click.Path(file_okay=False, path_type=Path)
_out = Terminal(highlight=False, soft_wrap=True)
_err = Terminal(stderr=True, highlight=False, soft_wrap=True)


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value))


def _plain_name(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Return a name that is one visible folder, or raise BadParameter."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", value):
        raise click.BadParameter(f"{value!r} is not a valid name; use up to 64 letters, digits, '_', '-' and '.'")
    return value


def _prepare(ctx: click.Context) -> Settings:
    """Prepare environment and data folder for a command, and return the settings."""
    settings = environment.prepare()
    if ctx.find_root().invoked_subcommand not in ("restore", "doctor"):
        check_finished(settings)
    os.umask(0o077)
    return settings


class _Command(click.Command):
    """Command that prepares the data folder after its options are parsed, so that `--help` changes nothing."""

    def invoke(self, ctx: click.Context) -> Any:
        ctx.obj = _prepare(ctx)
        return super().invoke(ctx)


class _Group(click.Group):
    """Group that turns errors that the user can fix into one line and exit code 2."""

    command_class = _Command
    group_class = type

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SettingsError, NetworksError, PriceSourcesError, FolderError, DamagedFileError) as error:
            raise click.UsageError(plain_line(str(error))) from error
        except (click.ClickException, click.exceptions.Exit):
            raise
        except WriterBusyError as error:
            _err.print(plain_line(str(error)), style="red", markup=False)
            sys.exit(EXIT_BUSY)
        except Exception as error:
            settings = load_settings()
            if is_disk_full(error, settings):
                raise click.ClickException(full_disk_sentence(settings.data_dir)) from error
            if isinstance(error, ControlError):
                raise click.UsageError(plain_line(str(error))) from error
            _exit_for_lake(error)
            raise


def _exit_for_lake(error: Exception) -> None:
    """Print the error of a lake or of one of DuckDB's extensions, and exit; return for any other error."""
    # Only commands with lakes import more than this.
    from warehouse.extensions import ExtensionError
    from warehouse.lakes import LakeBusyError, LakeError

    if isinstance(error, LakeError | ExtensionError):
        _err.print(plain_line(str(error)), style="red", markup=False)
        sys.exit(EXIT_BUSY if isinstance(error, LakeBusyError) else EXIT_FAILED)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ledgermart")
def main() -> None:
    """Ledgermart: a self-hosted warehouse and API for crypto tokens and wallets."""


@main.command()
@click.option("--tenant", "name", required=True, help="Name of the tenant.")
@click.option(
    "--new-control-store",
    is_flag=True,
    help="Create a control store in place of a lost or damaged one. A damaged file and the warehouse are renamed.",
)
@_json_option
@click.pass_obj
def init(settings: Settings, name: str, new_control_store: bool, as_json: bool) -> None:
    """Create the stores and a tenant in the shard LEDGERMART_SHARD, and print the tenant's first admin key once.

    The first call also builds and publishes empty marts, so that the API can answer immediately.
    """
    from warehouse.port import Warehouse

    began_at = time.monotonic()

    def begins(phase: str) -> None:
        if not as_json:
            _err.print(f"[dim]{time.monotonic() - began_at:4.0f} s  {phase}")

    check_writable(settings)
    store, warehouse = open_store(settings), Warehouse(settings)
    if new_control_store:
        store.set_aside_damaged()
    is_lost = not store.exists() and warehouse.has_remains()
    if is_lost:
        if not new_control_store:
            raise StoreLost(lost_beside_warehouse(settings, store))
        # A new store assigns the same integer keys again: rows of the old warehouse would get other owners.
        with warehouse.exclusive("ledgermart init"):
            warehouse.set_aside()
    begins("creating the control store")
    store.migrate()
    if warehouse.published() is None or is_lost:
        begins("loading the pipeline; publishing the first, empty version takes about 15 s")
        from cli.cycle import run_cycle

        result = run_cycle(settings, [], begins)
        if result.exit_code != 0:
            message = f"the empty version could not be published: {result.error}"
            _err.print(message, style="red", markup=False)
            sys.exit(result.exit_code)
    with store.write() as session:
        tenant = tenants.find_by_name(session, name)
        secret = None
        if tenant is None:
            tenant = tenants.create(session, name, settings.shard)
            _, secret = access.create_key(session, tenant.id, access.Role.ADMIN)
    begins("done")
    if as_json:
        _print_json({"tenant": name, "apiKey": secret})
        return
    if secret is None:
        _out.print(f"tenant {name} already exists; `ledgermart key create --tenant {name} --role ROLE` creates a key")
    else:
        _out.print(
            f"tenant  {name}\nkey     {secret}\nThe key is shown only once. Send it as: Authorization: Bearer KEY"
        )
    _out.print("\n".join(("\nNext:", *_next_steps(settings))))


def _next_steps(settings: Settings) -> Iterator[str]:
    """Return the commands that follow `init`; if no network has a node, the missing setting is first."""
    networks = networks_in_force(settings).values()
    if not any(network.is_enabled for network in networks):
        for network in list(networks)[:1]:
            yield f"  {network.name}: {network.disabled_reason}, or the variable of another network"
    yield "  ledgermart doctor    # checks ports, disk and nodes"
    yield f"  ledgermart up        # API, Dagster and the schedule; then open http://{settings.api_host}:{settings.api_port}/"


@main.group()
def key() -> None:
    """API keys of a tenant."""


@key.command("create")
@click.option("--tenant", "name", required=True, help="Name of the tenant.")
@click.option("--role", type=click.Choice([role.value for role in access.Role]), required=True, help="Role of the key.")
@_json_option
@click.pass_obj
def key_create(settings: Settings, name: str, role: str, as_json: bool) -> None:
    """Create a key and print it once."""
    with open_store(settings).write() as session:
        created, secret = access.create_key(session, tenants.get_by_name(session, name).id, role)
    if as_json:
        _print_json({"id": created.id, "tenant": name, "role": role, "apiKey": secret})
    else:
        _out.print(f"id   {created.id}\nkey  {secret}")


@key.command("list")
@click.option("--tenant", "name", required=True, help="Name of the tenant.")
@_json_option
@click.pass_obj
def key_list(settings: Settings, name: str, as_json: bool) -> None:
    """List a tenant's keys, without their secrets."""
    with open_store(settings).read() as session:
        keys = access.list_keys(session, tenants.get_by_name(session, name).id)
    rows = [
        {
            "id": row.id,
            "role": row.role,
            "createdAt": row.created_at.isoformat(),
            "lastUsedAt": row.last_used_at.isoformat() if row.last_used_at else None,
            "revokedAt": row.revoked_at.isoformat() if row.revoked_at else None,
        }
        for row in keys
    ]
    if as_json:
        _print_json({"data": rows})
        return
    print_rows(_out, ("id", "role", "created", "last used", "revoked"), [list(fields.values()) for fields in rows])


@key.command("revoke")
@click.option("--tenant", "name", required=True, help="Name of the tenant.")
@click.argument("key_id")
@_json_option
@click.pass_obj
def key_revoke(settings: Settings, name: str, key_id: str, as_json: bool) -> None:
    """Revoke a key immediately and permanently."""
    with open_store(settings).write() as session:
        access.revoke_key(session, tenants.get_by_name(session, name).id, key_id)
    if as_json:
        _print_json({"id": key_id, "tenant": name, "isRevoked": True})
    else:
        _out.print(f"{key_id} is revoked")


@main.group()
def tenant() -> None:
    """Tenants, their shards and their quotas."""


@tenant.command("create")
@click.argument("name")
@click.option("--shard", type=click.IntRange(0, HIGHEST_SHARD), help="Shard of the tenant; default: LEDGERMART_SHARD.")
@_json_option
@click.pass_obj
def tenant_create(settings: Settings, name: str, shard: int | None, as_json: bool) -> None:
    """Create the tenant NAME, and print its first admin key once.

    The pipeline with the same LEDGERMART_SHARD builds the tenant's marts.
    """
    shard = settings.shard if shard is None else shard
    with open_store(settings).write() as session:
        created = tenants.create(session, name, shard)
        _, secret = access.create_key(session, created.id, access.Role.ADMIN)
    if as_json:
        _print_json({"id": created.id, "tenant": name, "shard": shard, "apiKey": secret})
    else:
        _out.print(f"tenant  {name}\nshard   {shard}\nkey     {secret}", markup=False)


@tenant.command("list")
@_json_option
@click.pass_obj
def tenant_list(settings: Settings, as_json: bool) -> None:
    """List the tenants; with their shards, if any of them is not in shard 0 or moves."""
    with open_store(settings).read() as session:
        found = tenants.list_all(session)
    rows = [
        {
            "id": row.id,
            "tenant": row.name,
            "createdAt": row.created_at.isoformat(),
            "shard": row.shard,
            "nextShard": row.next_shard,
        }
        for row in found
    ]
    if as_json:
        _print_json({"data": rows})
        return
    columns = ("id", "tenant", "created", "shard", "moving to")
    is_moving = any(row.next_shard is not None for row in found)
    shown = 5 if is_moving else 4 if any(row.shard for row in found) else 3
    print_rows(_out, columns[:shown], [list(row.values())[:shown] for row in rows])


@tenant.command("move")
@click.argument("name")
@click.option("--to", "shard", type=click.IntRange(0, HIGHEST_SHARD), help="The new shard.")
@click.option("--cancel", "is_cancelled", is_flag=True, help="End a move before the switch.")
@_json_option
@click.pass_obj
def tenant_move(settings: Settings, name: str, shard: int | None, is_cancelled: bool, as_json: bool) -> None:
    """Move the tenant NAME to another shard; run it on the machine of its present shard.

    It copies the warehouse between two cycles, and puts the tenant's rows into LEDGERMART_VERSIONS. The pipeline of the
    new shard imports, builds and publishes them. After that publication the API answers from the new shard, and the
    present one deletes the rows. Until then the tenant's history requests, attestations and price discoveries wait.
    Repeat the command if it was interrupted. Exit codes: 0 success; 1 the store does not answer; 2 the tenant cannot
    move.
    """
    from cli.moving import run_cancel, run_move
    from warehouse.objects import ObjectStoreError

    if is_cancelled == (shard is not None):
        raise click.UsageError("give either --to or --cancel")
    try:
        if shard is None:
            found = run_cancel(settings, name)
        else:
            found = run_move(settings, name, shard, _err)
    except ObjectStoreError as error:
        raise click.ClickException(plain_line(str(error))) from error
    if as_json:
        _print_json(found)
    elif shard is None:
        _out.print(f"{name} stays in shard {found['shard']}", markup=False)
    else:
        _out.print(
            f"The rows of {name} ({found['bytes']:,} bytes) are stored for shard {shard}. Its pipeline takes over with "
            "its next publication; `ledgermart tenant list` shows when.",
            markup=False,
        )


def _limit(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> int | str | None:
    """Return a limit as a number, `default`, or None where it was not given; or raise BadParameter."""
    if value is None or value == _DEFAULT:
        return value
    if not (value.isascii() and value.isdigit() and len(value) <= 12 and int(value) <= HIGHEST_QUOTA):
        raise click.BadParameter(f"{value!r} is no limit; use a whole number up to {HIGHEST_QUOTA}, or {_DEFAULT}")
    return int(value)


@tenant.command("quotas")
@click.argument("name")
@click.option("--stored-prices", callback=_limit, help="New limit of manual prices, or `default` for that of all.")
@click.option("--objects", callback=_limit, help="New limit of objects, or `default` for that of all.")
@_json_option
@click.pass_obj
def tenant_quotas(
    settings: Settings, name: str, stored_prices: int | str | None, objects: int | str | None, as_json: bool
) -> None:
    """Show the quotas of the tenant NAME with its usage, or set limits that hold for this tenant alone.

    A lower limit deletes nothing. It only refuses further writes.
    """
    given = {quotas.QuotaName.STORED_PRICES: stored_prices, quotas.QuotaName.OBJECTS: objects}
    limits = {quota: None if limit == _DEFAULT else int(limit) for quota, limit in given.items() if limit is not None}
    store = open_store(settings)
    if limits:
        with store.write() as session:
            quotas.set_limits(session, tenants.get_by_name(session, name).id, limits)
    with store.read() as session:
        found = quotas.read(session, tenants.get_by_name(session, name).id)
    if as_json:
        _print_json({"tenant": name, "data": [quota._asdict() for quota in found]})
        return
    print_rows(_out, ("quota", "used", "limit", "setting"), found)


@main.command()
@click.option("--host", help="Address to listen on; default: LEDGERMART_API_HOST.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on; default: LEDGERMART_API_PORT.")
@click.pass_obj
def api(settings: Settings, host: str | None, port: int | None) -> None:
    """Serve the API."""
    from api.server import serve
    from cli.ports import Port, check_exposure, check_ports

    host, port = host or settings.api_host, port or settings.api_port
    check_exposure(settings, host)
    check_ports([Port("API", "LEDGERMART_API_PORT or --port", host, port)])
    try:
        with closing(open_store(settings)) as store:
            check_exists(settings, store)
    except StoreUnavailable as error:
        # An API that starts before its database answers 503 until that is reachable.
        if isinstance(error, StoreLost):
            raise
    serve(settings, host, port)


@main.command()
@click.option("--network", "networks", multiple=True, help="Only this network; repeatable.")
@click.option("--rebuild", is_flag=True, help="Delete the build file of the marts, and build all of them again.")
@click.option(
    "--new-warehouse",
    is_flag=True,
    help="Begin an empty warehouse in place of a lost or damaged one, whose file is renamed.",
)
@_json_option
@click.pass_obj
def cycle(settings: Settings, networks: tuple[str, ...], rebuild: bool, new_warehouse: bool, as_json: bool) -> None:
    """Run one pipeline cycle: extract, transform, publish.

    Exit codes: 0 success; 1 a step failed; 3 a network failed and the others continued; 4 another process was writing.
    """
    from cli.backfill import progress_bars
    from cli.cycle import UnknownNetwork, run_cycle

    open_existing(settings).close()
    try:
        with progress_bars(settings, _err):
            result = run_cycle(settings, list(networks) or None, rebuild=rebuild, new_warehouse=new_warehouse)
    except UnknownNetwork as error:
        raise click.BadParameter(str(error), param_hint="--network") from error
    _tell(result, as_json)


@main.command()
@click.option("--network", "networks", multiple=True, help="Only this network; repeatable.")
@_json_option
@click.pass_obj
def backfill(settings: Settings, networks: tuple[str, ...], as_json: bool) -> None:
    """Run cycles until every history request is finished, with a progress bar for each.

    `ledgermart up` does the same by itself; use this command while it is not running. Exit codes as for `cycle`.
    """
    from cli.backfill import run_backfill
    from cli.cycle import UnknownNetwork

    open_existing(settings).close()
    try:
        result = run_backfill(settings, list(networks) or None, _err)
    except UnknownNetwork as error:
        raise click.BadParameter(str(error), param_hint="--network") from error
    _tell(result, as_json)


def _tell(result: "CycleResult", as_json: bool) -> NoReturn:
    """Print the result of a cycle, and exit with its code."""
    if as_json:
        _print_json(result.as_json())
    else:
        for name, network in result.as_json()["networks"].items():
            parts = ", ".join(
                f"{part['rows']} {part['table']} in blocks {part['from']} to {part['to']}"
                for part in network["collected"]
            )
            line = f"{name:12} {network['status']:10} head {network['head']}  {parts or 'nothing new'}"
            _out.print(line, markup=False)
        if result.publication:
            _out.print(f"version {result.publication.version}{'' if result.is_new_version else ' (unchanged)'}")
        if result.progress and result.progress.was_read_to_end:
            _out.print("past data was read completely; the next cycle publishes it")
        for warning in result.warnings:
            _err.print(warning, style="yellow", markup=False)
        if result.error:
            _err.print(plain_line(result.error), style="red", markup=False)
    sys.exit(result.exit_code)


@main.command()
@click.pass_obj
def up(settings: Settings) -> None:
    """Run API, Dagster and the continuous schedule until stopped.

    Exit codes: 0 stopped; 2 a setting is wrong, a port is taken, or the data folder is not writable; 4 the service
    is already running.
    """
    from cli.ports import PATIENCE_SECONDS, check_exposure, check_ports, ports_of
    from cli.up import run
    from pipelines.defs.records import set_aside_damaged
    from warehouse.lock import describe_holder, writer_lock

    check_exposure(settings, settings.api_host)
    check_writable(settings)
    check_socket(settings)
    lock = settings.data_dir / "up.lock"
    try:
        with writer_lock(lock, "ledgermart up", 0):
            # Children of a service that was killed hold their ports until they have stopped.
            check_ports(ports_of(settings), PATIENCE_SECONDS)
            store = open_existing(settings)
            with store.read() as session:
                has_tenant = tenants.exists(session)
            store.close()
            if damaged := set_aside_damaged(settings.dagster_dir):
                _err.print(
                    f"{damaged} is damaged; Dagster begins new records of runs, and no data is lost", markup=False
                )
            run(settings, _out, has_tenant=has_tenant)
    except WriterBusyError:
        _err.print(
            f"the service in {settings.data_dir} is already running: {describe_holder(lock)}", style="red", markup=False
        )
        sys.exit(EXIT_BUSY)


@main.command()
@click.pass_obj
def worker(settings: Settings) -> None:
    """Run the worker alone: the cycles of one shard, until stopped.

    `up` starts it with the other processes; on several machines, systemd or a container does, and starts it again when
    it ends. Exit codes: 0 stopped, or the code changed; 1 the worker cannot work; 2 a setting is wrong, or there is no
    control store.
    """
    check_writable(settings)
    open_existing(settings).close()
    memory = settings.process_memory_mb * 1_000_000
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    # -P: modules in the working directory must not replace ours.
    os.execv(sys.executable, [sys.executable, "-Pm", "pipelines.worker"])


@main.command()
@click.option("--network", "networks", multiple=True, help="Only this network; repeatable.")
@click.option("--deep", is_flag=True, help="Read every file of the data folder completely, and check owner and modes.")
@click.option("--backup", type=_folder, metavar="DIR", help="With --deep: check the backup in this folder as well.")
@_json_option
@click.pass_obj
def doctor(settings: Settings, networks: tuple[str, ...], deep: bool, backup: Path | None, as_json: bool) -> None:
    """Check versions, data folder, disk, ports, stores and the nodes of all networks; change nothing.

    It works at any time, also before `init`. It requests chain, newest block, archive and traces from every URL of a
    network. Exit codes: 0 no problem; 1 a problem; 2 the command line or a setting is wrong.
    """
    from cli.doctor import Deep, UnknownNetwork, diagnose, print_diagnosis

    def on_wait(holder: str) -> None:
        _err.print(f"waiting for the running cycle: {holder}", markup=False)

    if backup is not None and not deep:
        raise click.UsageError("--backup needs --deep")
    try:
        found = diagnose(settings, networks, Deep(backup, on_wait) if deep else None)
    except UnknownNetwork as error:
        raise click.BadParameter(str(error), param_hint="--network") from error
    if as_json:
        _print_json(found.as_json())
    else:
        print_diagnosis(found, _out)
    sys.exit(found.exit_code)


@main.group()
def network() -> None:
    """Networks of this installation."""


@network.command("reset")
@click.argument("name")
@click.option("--keep-lake", "keeps_lake", is_flag=True, help="Leave the lake, and take its facts; for a false row.")
@click.option("--yes", "is_confirmed", is_flag=True, help="Do not ask for confirmation.")
@_json_option
@click.pass_obj
def network_reset(settings: Settings, name: str, keeps_lake: bool, is_confirmed: bool, as_json: bool) -> None:
    """Move all facts of a network into an archive, and collect it again; for a restarted chain.

    The facts of blocks, transfers, balances and attestations go to a DuckDB file in the folder `archive` of the data
    folder. Ledgers, tokens, wallets, windows and history requests stay, and are collected from the chain that the node
    serves now. The facts of the chain in the network's lake, which all shards use, are deleted. Exit codes: 0 success;
    2 nothing is known of the network; 4 another process was writing.
    """
    from cli.network import NothingCollectedError, print_reset, run_reset

    if not is_confirmed:
        also = " Its facts in a lake are deleted for all shards." if settings.lake and not keeps_lake else ""
        question = f"Move all collected facts of {name} to an archive, and collect it again?{also}"
        click.confirm(question, abort=True, err=True)
    try:
        done = run_reset(settings, name, keeps_lake=keeps_lake)
    except NothingCollectedError as error:
        raise click.BadParameter(str(error), param_hint="NAME") from error
    if as_json:
        _print_json(done.as_json())
    else:
        print_reset(done, _out)


@network.command("check")
@click.argument("name")
@_json_option
@click.pass_obj
def network_check(settings: Settings, name: str, as_json: bool) -> None:
    """Have the next cycle read the native balances of a network's wallets, also where that takes minutes.

    Exit codes: 0 success; 2 no wallet of the network is tracked; 4 another process was writing.
    """
    from cli.network import NothingCollectedError, run_check

    try:
        wallets = run_check(settings, name)
    except NothingCollectedError as error:
        raise click.BadParameter(str(error), param_hint="NAME") from error
    if as_json:
        _print_json({"network": name, "wallets": wallets})
    else:
        _out.print(f"The next cycle reads the balances of {wallets} wallets of {name}.", markup=False)


@main.group("migrate-warehouse")
def migrate_warehouse() -> None:
    """Moves of facts between the warehouse and the lake of LEDGERMART_LAKE."""


@migrate_warehouse.command("lake")
@click.option("--network", "networks", multiple=True, help="Only this network; repeatable.")
@_json_option
@click.pass_obj
def migrate_to_lake(settings: Settings, networks: tuple[str, ...], as_json: bool) -> None:
    """Give all settled facts of the warehouse to the lake, and compare both.

    The warehouse keeps its facts. A command that was interrupted continues where it stopped. A difference is an error;
    nothing is removed. Exit codes: 0 success; 1 warehouse and lake differ, or the lake does not answer; 4 another
    process was writing.
    """
    _migrate(settings, networks, as_json, is_back=False)


@migrate_warehouse.command("back")
@click.option("--network", "networks", multiple=True, help="Only this network; repeatable.")
@_json_option
@click.pass_obj
def migrate_back(settings: Settings, networks: tuple[str, ...], as_json: bool) -> None:
    """Take missing blocks of the warehouse's tokens and wallets from the lake, and compare both.

    Normally nothing is missing. Then LEDGERMART_LAKE may be unset; the lake stays for the other shards. Exit codes as
    for `migrate-warehouse lake`.
    """
    _migrate(settings, networks, as_json, is_back=True)


def _migrate(settings: Settings, networks: tuple[str, ...], as_json: bool, *, is_back: bool) -> None:
    from cli.lake import UnknownNetwork, print_migration, run_migration
    from pipelines.extract.errors import ExtractError

    try:
        found = run_migration(settings, networks, lambda line: _err.print(line, markup=False), is_back=is_back)
    except UnknownNetwork as error:
        raise click.BadParameter(str(error), param_hint="--network") from error
    except ExtractError as error:
        raise click.ClickException(plain_line(str(error))) from error
    if as_json:
        _print_json(found)
    else:
        print_migration(found, _out, is_back=is_back)


@main.group()
def lake() -> None:
    """The lake of facts that all shards share."""


@lake.command("orphans")
@click.option("--network", "networks", multiple=True, help="Only this network; repeatable.")
@click.option("--delete", "is_deleted", is_flag=True, help="Delete the files.")
@_json_option
@click.pass_obj
def lake_orphans(settings: Settings, networks: tuple[str, ...], is_deleted: bool, as_json: bool) -> None:
    """List files of the lake that its catalogue does not name, older than LEDGERMART_LAKE_KEEP_DAYS.

    Killed writers leave such files. If the catalogue was restored from a backup, they are its newest files: delete
    none for a week after that. Exit codes: 0 success; 1 the lake does not answer; 4 another process was writing it.
    """
    from cli.lake import UnknownNetwork, print_orphans, run_orphans

    try:
        found = run_orphans(settings, networks, is_deleted=is_deleted)
    except UnknownNetwork as error:
        raise click.BadParameter(str(error), param_hint="--network") from error
    if as_json:
        _print_json(found)
    else:
        print_orphans(found, _out)


@main.command()
@_json_option
@click.pass_obj
def status(settings: Settings, as_json: bool) -> None:
    """Show tracked tokens and wallets, how far they are collected, and the published version."""
    from cli.status import print_status, read_status

    found = read_status(settings)
    if as_json:
        _print_json(found)
    else:
        print_status(found, _out)


@main.command()
@click.option("--format", "form", type=click.Choice(_EXPORTS), help="Format of the files; required without --raw.")
@click.option("--tenant", "name", help="Name of the tenant; required without --raw.")
@click.option("--mart", "marts", multiple=True, help="Export only this mart; repeatable.")
@click.option("--raw", "network_name", metavar="NETWORK", help="Export the raw facts of this network instead.")
@click.option(
    "--out",
    type=_folder,
    help="Folder to create. Default: a folder in the current one, named after tenant and version, or the network.",
)
@click.option("--force", is_flag=True, help="Replace an earlier export.")
@_json_option
@click.pass_context
def export(
    ctx: click.Context,
    form: str | None,
    name: str | None,
    marts: tuple[str, ...],
    network_name: str | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a tenant's rows of the published marts as Parquet, CSV or Excel files, with all rows and digits.

    Decimals, and integers of any size, are text; workbooks have them as numbers of 15 digits, too. In CSV, a text that
    a spreadsheet would read as a formula gets an apostrophe in front. The folder appears when all files are complete;
    its manifest.json lists them.

    With --raw, the command writes the final facts of a network as Parquet files that another installation reads as a
    data set of the form `ledgermart`. They are the facts of all tenants, and show the addresses that the tenants track,
    so this is a command for the operator. Labels, names and keys are not in them. It needs disk space for a copy of
    the warehouse.
    """
    from cli.export import print_export, print_raw_export, run_export, run_raw_export
    from pipelines.deliver.export import Format

    if network_name is not None:
        if form is not None or name is not None or marts:
            raise click.UsageError("--raw writes the facts of all tenants as Parquet: omit --format, --tenant, --mart")
        found = run_raw_export(ctx.obj, network_name, out, force=force, console=_err)
    elif form is None or name is None:
        missing = "form" if form is None else "name"
        raise click.MissingParameter(ctx=ctx, param=next(p for p in ctx.command.params if p.name == missing))
    else:
        found = run_export(ctx.obj, name, Format(form), out, marts=marts, force=force, console=_err)
    if as_json:
        _print_json(found)
    elif network_name is not None:
        print_raw_export(found, _out)
    else:
        print_export(found, _out)


@main.command()
@click.argument("folder", type=_folder, metavar="DIR")
@_json_option
@click.pass_obj
def backup(settings: Settings, folder: Path, as_json: bool) -> None:
    """Make a backup of control store, warehouse and build file in DIR while the service runs.

    An earlier backup in DIR is replaced once the new one is whole. It waits until no cycle is running; the next cycle
    waits until the files are copied.
    """
    from cli.backup import print_backup, run_backup

    made = run_backup(settings, folder, _err)
    if as_json:
        _print_json(made.as_json())
    else:
        print_backup(made, _out)


@main.command()
@click.argument("folder", type=_folder, metavar="DIR")
@click.option("--set-aside", is_flag=True, help="Rename data that the data folder holds; nothing is deleted.")
@_json_option
@click.pass_obj
def restore(settings: Settings, folder: Path, set_aside: bool, as_json: bool) -> None:
    """Restore the backup in DIR into the data folder, after comparing every file with the manifest.

    The service must be stopped. A restore that was interrupted is completed. Exit codes: 0 success; 2 the backup or the
    data folder cannot be used; 4 the service or a cycle is running.
    """
    from cli.restore import print_restored, run_restore
    from warehouse.lock import describe_holder

    try:
        done = run_restore(settings, folder, set_aside=set_aside, console=_err)
    except WriterBusyError as error:
        holder = describe_holder(error.path)
        _err.print(f"{settings.data_dir} is in use by {holder}; stop it first", style="red", markup=False)
        sys.exit(EXIT_BUSY)
    if as_json:
        _print_json(done.as_json())
    else:
        print_restored(done, settings, _out)


@main.group(invoke_without_command=True)
@click.option("--name", default="analyst", show_default=True, callback=_plain_name, help="Name of the sandbox.")
@click.option("--dir", "parent", type=_folder, help="Folder of the sandboxes; default: `sandboxes` in the data folder.")
@click.option("--refresh", is_flag=True, help="Replace the sandbox with a new copy; everything built in it is lost.")
@_json_option
@click.pass_context
def sandbox(ctx: click.Context, name: str, parent: Path | None, refresh: bool, as_json: bool) -> None:
    """Make an analyst's own copy of raw tables, models and marts, to use with dbt while the service runs.

    It waits until no cycle is running; the next cycle waits until the copy is complete.
    """
    from cli.sandbox import print_sandbox, run_sandbox

    if ctx.invoked_subcommand is not None:
        return
    settings = _prepare(ctx)
    made = run_sandbox(settings, _sandboxes(settings, parent) / name, refresh=refresh, console=_err)
    if as_json:
        _print_json(made.as_json())
    else:
        print_sandbox(made, _out)


def _sandboxes(settings: Settings, parent: Path | None) -> Path:
    return (parent or settings.data_dir / "sandboxes").absolute()


@sandbox.command("list")
@_json_option
@click.pass_context
def sandbox_list(ctx: click.Context, as_json: bool) -> None:
    """List the sandboxes."""
    from cli.sandbox import print_sandboxes
    from pipelines.deliver.sandbox import list_sandboxes

    assert ctx.parent is not None
    found = list_sandboxes(_sandboxes(ctx.obj, ctx.parent.params["parent"]))
    if as_json:
        _print_json({"data": [one.as_json() for one in found]})
    else:
        print_sandboxes(found, _out)


@sandbox.command("remove")
@click.argument("name", callback=_plain_name)
@_json_option
@click.pass_context
def sandbox_remove(ctx: click.Context, name: str, as_json: bool) -> None:
    """Remove a sandbox and everything built in it."""
    from pipelines.deliver.sandbox import remove_sandbox

    assert ctx.parent is not None
    remove_sandbox(_sandboxes(ctx.obj, ctx.parent.params["parent"]) / name)
    if as_json:
        _print_json({"name": name, "isRemoved": True})
    else:
        _out.print(f"{name} is removed")


@main.command()
@click.option("--token", "token_id", metavar="ID", help="Link to the cap table of this token, tok_...")
@click.option("--wallet", "wallet_id", metavar="ID", help="Link to the activity of this wallet, wal_...")
@click.option(
    "--theme",
    type=click.Choice(["auto", "light", "dark"]),
    default="auto",
    show_default=True,
    help="Colours of the report.",
)
@_json_option
@click.pass_obj
def report(settings: Settings, token_id: str | None, wallet_id: str | None, theme: "Theme", as_json: bool) -> None:
    """Print a short-lived link to a report, or to the list of all the tenant's reports.

    It needs an API key of the tenant: set LEDGERMART_API_KEY, or enter the key at the hidden prompt.
    """
    import msgspec

    from cli.report import make_link, print_link

    if token_id is not None and wallet_id is not None:
        raise click.UsageError("give --token or --wallet, not both")
    key = os.environ.get("LEDGERMART_API_KEY") or click.prompt("API key", hide_input=True, err=True)
    link = make_link(settings, key, token_id, wallet_id, theme)
    if as_json:
        _print_json(msgspec.to_builtins(link))
    else:
        print_link(link, settings, _out)


@main.command()
@click.pass_obj
def openapi(settings: Settings) -> None:
    """Print the OpenAPI document."""
    from api.app import openapi_document

    _print_json(openapi_document(settings))
