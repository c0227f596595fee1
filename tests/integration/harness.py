"""A separate service for one test: data folder, network definitions, control store, and cycles of its pipeline.

`cycle` runs the collection in this process, as a Dagster run does but without Dagster; `ledgermart` runs the real
console command. The expected numbers are in `oracle`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from control import access, attestations, ledgers, operations, subjects, tenants, tokens, wallets
from control.access import Principal
from control.ledgers import LedgerPut
from control.models import TrackingWindow
from control.networks.data_sets import DataSet
from control.networks.definitions import load_networks
from control.operations import HistoryRequest, OperationRow
from control.settings import load_settings
from control.snapshot import read_snapshot
from control.subjects import SubjectRow, TokenCreate, WalletCreate
from pipelines.attestations.collecting import Periods, collect_attestations
from pipelines.chain.checks import check_batch
from pipelines.chain.segments import NetworkReport
from pipelines.deliver.operations import report_attestations, report_requests
from pipelines.deliver.progress import write_progress
from pipelines.extract.budget import Budget
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.family import EvmNode
from pipelines.extract.jsonrpc.client import Dialect, RpcClient
from pipelines.extract.utxo.dialect import UTXO
from pipelines.extract.utxo.family import UtxoNode
from pipelines.history.collecting import collect_history
from pipelines.lake.tables import open_lake, open_lakes
from pipelines.network_cycle import collect_network
from pipelines.prices.routes import update_routes
from pipelines.raw.builds import finish_batch
from pipelines.raw.database import open_warehouse
from pipelines.tenants.configuration import open_batch, replace_control
from pipelines.tenants.price_configuration import read_manual_prices_to_copy
from tests.integration.warm_processes import console_command, run_forked
from tests.templates import open_migrated
from tests.waiting import Naps
from warehouse.versions import current_publication

LEDGERMART = Path(sys.executable).with_name("ledgermart")

_OWED_TO = """
    (
        select string_agg(tenant_name, ' ' order by tenant_name)
        from raw.control_tenants
        where visible_to[tenant_id] is not null
    ) as visible_to"""
# Columns of each raw table that do not depend on time, number of cycles, or batch of the collection.
_STABLE = {
    "token_transfers": "select * exclude (batch_id) replace (amount_raw::varchar as amount_raw)",
    "transactions": """
        select * exclude (batch_id) replace (value_raw::varchar as value_raw, fee_raw::varchar as fee_raw)""",
    "internal_transfers": "select * exclude (batch_id) replace (amount_raw::varchar as amount_raw)",
    "view_ranges": "select *",
    "token_metadata": """
        select * exclude (read_at) replace (
            (select tenant_name from raw.control_tenants as tenants where tenants.tenant_id = token_metadata.tenant_id)
            as tenant_id
        )""",
    "balance_observations": f"""
        select * exclude (batch_id) replace (quantity_raw::varchar as quantity_raw, {_OWED_TO})""",
    "supply_observations": f"""
        select * exclude (batch_id) replace (total_supply_raw::varchar as total_supply_raw, {_OWED_TO})""",
    "blocks": "select * exclude (batch_id)",
}


_NODES: dict[str, tuple[type[EvmNode] | type[UtxoNode], Dialect]] = {"evm": (EvmNode, EVM), "utxo": (UtxoNode, UTXO)}


@dataclass(frozen=True)
class LocalNetwork:
    """A network of the service; `url` None leaves its variable unset, which disables it.

    `second_url` is of another node on the same chain.
    """

    name: str
    url: str | None
    chain_id: int = 31337
    finality_depth: int = 64
    max_log_range: int | None = None
    multicall_address: str | None = None
    common_tokens: Sequence[tuple[str, str, int]] = ()
    second_url: str | None = None
    block_milliseconds: int | None = None
    max_requests_per_day: int | None = None
    data_sets: Sequence[DataSet] = ()

    @property
    def variable(self) -> str:
        """The environment variable with the node's address."""
        return f"{self.name.upper()}_RPC_URL"

    def as_toml(self) -> str:
        """The network's part of the definitions file."""
        lines = [
            "[[network]]",
            f'name = "{self.name}"',
            f'display_name = "{self.name.title()}"',
            'family = "evm"',
            f"chain_id = {self.chain_id}",
            "is_testnet = true",
            f"rpc = {json.dumps([f'${{{self.variable}}}', *([self.second_url] if self.second_url else [])])}",
            'native = { symbol = "ETH", decimals = 18 }',
            f"finality_depth = {self.finality_depth}",
            "poll_seconds = 1",
        ]
        if self.max_log_range is not None:
            lines.append(f"max_log_range = {self.max_log_range}")
        if self.block_milliseconds is not None:
            lines.append(f"block_milliseconds = {self.block_milliseconds}")
        if self.max_requests_per_day is not None:
            lines.append(f"max_requests_per_day = {self.max_requests_per_day}")
        if self.multicall_address is not None:
            lines.append(f'multicall_address = "{self.multicall_address}"')
        for symbol, address, decimals in self.common_tokens:
            lines += ["[[network.token]]", f'symbol = "{symbol}"', f'address = "{address}"', f"decimals = {decimals}"]
        for one in self.data_sets:
            columns = ", ".join(f"{name} = {json.dumps(own)}" for name, own in one.columns.items())
            lines += ["[[network.data_set]]", f'name = "{one.name}"', f'form = "{one.form}"']
            lines += [f"files = {json.dumps(one.files)}", f"columns = {{ {columns} }}"]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class LocalUtxoNetwork:
    """A network of the family of outputs, with Litecoin's addresses of local chains; otherwise as LocalNetwork."""

    name: str
    url: str | None
    finality_depth: int = 6
    collect: str = "full"
    second_url: str | None = None
    proof_of_work: str = "none"
    genesis_hash: str = "530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9"
    is_testnet: bool = True

    @property
    def variable(self) -> str:
        """The environment variable with the node's address."""
        return f"{self.name.upper().replace('-', '_')}_RPC_URL"

    def as_toml(self) -> str:
        """The network's part of the definitions file."""
        rpc = [f"${{{self.variable}}}", *([self.second_url] if self.second_url else [])]
        return "\n".join(
            [
                "[[network]]",
                f'name = "{self.name}"',
                f'display_name = "{self.name.title()}"',
                'family = "utxo"',
                f'genesis_hash = "{self.genesis_hash}"',
                "pubkey_hash_prefix = 111",
                "script_hash_prefixes = [58, 196]",
                'segwit_prefix = "rltc"',
                f'proof_of_work = "{self.proof_of_work}"',
                'mweb_prefix = "tmweb"',
                'extended_key_versions = ["043587cf"]',
                f"is_testnet = {json.dumps(self.is_testnet)}",
                f"rpc = {json.dumps(rpc)}",
                f'native = {{ symbol = "LTC", decimals = 8, collect = "{self.collect}" }}',
                f"finality_depth = {self.finality_depth}",
                "poll_seconds = 1",
                "",
            ]
        )


class Service:
    """A service in a separate folder, with a migrated control store.

    Args:
        folder: an empty folder for all files of the service.
        networks: the definitions.
        settings: further LEDGERMART_* variables.
    """

    def __init__(
        self,
        folder: Path,
        networks: Sequence[LocalNetwork | LocalUtxoNetwork],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        definitions = folder / "networks.toml"
        definitions.write_text("\n".join(network.as_toml() for network in networks))
        self.variables = {
            "LEDGERMART_DATA_DIR": str(folder / "data"),
            "LEDGERMART_NETWORKS": str(definitions),
            **{network.variable: network.url for network in networks if network.url is not None},
            **(settings or {}),
        }
        self.settings = load_settings(self.variables)
        self.networks = load_networks(definitions, self.variables)
        self.store = open_migrated(self.settings)
        # Tenants with imported rows that are not switched to this shard yet.
        self.arrived: list[str] = []
        self._batches = 0

    def point_at(self, network: str, url: str) -> None:
        """Have another node serve a network from now on."""
        self.variables[f"{network.upper()}_RPC_URL"] = url
        self.networks = load_networks(self.settings.networks_file, self.variables)

    def close(self) -> None:
        """Close the control store."""
        self.store.close()

    # Tenants' actions

    def tenant(self, name: str = "acme", network: str = "local") -> Principal:
        """Create a tenant with an admin key and a ledger on the network, named as the network."""
        with self.store.write() as session:
            tenant = tenants.create(session, name, self.settings.shard)
            key, _ = access.create_key(session, tenant.id, access.Role.ADMIN)
            principal = Principal(tenant.id, key.id, access.Role.ADMIN)
            ledgers.put(session, principal, self.networks, network, LedgerPut(name=network))
        return principal

    def bearer(self, principal: Principal) -> str:
        """Create one more admin key of the tenant."""
        with self.store.write() as session:
            return access.create_key(session, principal.tenant_id, access.Role.ADMIN)[1]

    def ledger(self, principal: Principal, network: str) -> None:
        """Make one more ledger, named as its network."""
        with self.store.write() as session:
            ledgers.put(session, principal, self.networks, network, LedgerPut(name=network))

    def token(
        self, principal: Principal, address: str, *, tracked_from: datetime | None = None, ledger: str = "local"
    ) -> SubjectRow:
        """Add a token, tracked from an instant or not at all."""
        with self.store.write() as session:
            row = tokens.create(
                session, principal, self.networks, TokenCreate(ledger=ledger, symbol="TKN", ledger_id=address)
            )
        return row if tracked_from is None else self.track(principal, row, True, tracked_from)

    def wallet(
        self, principal: Principal, address: str, *, tracked_from: datetime | None = None, ledger: str = "local"
    ) -> SubjectRow:
        """Add a wallet, tracked from an instant or not at all."""
        with self.store.write() as session:
            row = wallets.create(session, principal, self.networks, WalletCreate(ledger=ledger, ledger_id=address))
        return row if tracked_from is None else self.track(principal, row, True, tracked_from)

    def track(self, principal: Principal, subject: SubjectRow, enabled: bool, at: datetime) -> SubjectRow:
        """Enable or disable tracking at an instant, also one that is past."""
        with self.store.write() as session:
            return subjects.set_tracking(session, principal, subject, enabled, at)

    def add_window(self, principal: Principal, subject: SubjectRow, opened_at: datetime, closed_at: datetime) -> None:
        """Give a subject a closed window in the past, as a history has."""
        with self.store.write() as session:
            session.add(
                TrackingWindow(
                    subject_key=subject.subject_key,
                    opened_at=opened_at,
                    closed_at=closed_at,
                    opened_by=principal.key_id,
                )
            )

    # The pipeline

    def node(self, network: str = "local", urls: Sequence[str] = (), **options: Any) -> Any:
        """Open a node with few attempts and no waiting; `urls` replace its own, `options` are those of RpcClient."""
        defined = self.networks[network]
        naps = Naps()
        patience = {
            "timeout": (60.0, 60.0),
            "max_attempts": 3,
            "max_seconds": 50.0,
            "sleep": naps.sleep,
            "clock": naps.clock,
            **options,
        }
        kind, dialect = _NODES[defined.family]
        return kind(defined, RpcClient(network, urls or defined.rpc_urls, dialect, **patience))

    @contextmanager
    def _batch(self, warehouse: Path | None = None) -> Iterator[tuple[duckdb.DuckDBPyConnection, int]]:
        """Open a warehouse, and a batch with the present configuration."""
        with open_warehouse(warehouse or self.settings.warehouse_path) as connection:
            with self.store.read() as session:
                snapshot = read_snapshot(session, self.settings.shard, self.arrived)
                manual = read_manual_prices_to_copy(connection, session, snapshot, self.settings.shard, self.arrived)
            self._batches += 1
            batch = open_batch(connection, f"test run {self._batches}")
            replace_control(connection, snapshot, self.networks, batch, manual_prices=manual)
            yield connection, batch

    def cycle(
        self, network: str = "local", *, node: EvmNode | UtxoNode | None = None, warehouse: Path | None = None
    ) -> NetworkReport:
        """Run one cycle of one network in this process; after a successful one, assert the raw checks.

        Args:
            node: default: the network's own.
            warehouse: default: the service's own; another file for a clean collection.
        """
        used = node or self.node(network)
        try:
            with self._batch(warehouse) as (connection, batch):
                report = collect_network(connection, used, batch, open_lake(self.settings, used.network))
                finish_batch(connection, batch)
                if warehouse is None:
                    write_progress(connection, self.settings.data_dir, batch)
                if report.error is None:
                    findings = check_batch(connection, network, batch)
                    found = {one.check.name: one.example for one in findings if one.count and not one.check.is_warning}
                    assert found == {}, found
        finally:
            if node is None:
                used.close()
        return report

    def good_cycle(self, network: str = "local") -> NetworkReport:
        """Run one cycle that has to go well."""
        report = self.cycle(network)
        assert report.error is None, (report.error, report.defect)
        return report

    def route_prices(self) -> None:
        """Resolve the routes of all pairs to manual sources."""
        with self._batch() as (connection, batch):
            update_routes(connection, {}, batch)
            finish_batch(connection, batch)

    def history(
        self,
        parts: int | None = None,
        make_budget: Callable[[], Budget] | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> list[NetworkReport]:
        """Continue history requests in this process, to the end or for `parts`; report to the control store."""
        done = 0

        def count() -> None:
            nonlocal done
            done += 1

        with self._batch() as (connection, batch):
            reports = collect_history(
                connection,
                self.networks,
                batch,
                lambda: is_over() or (parts is not None and done > parts),
                count,
                make_budget,
                self.settings.staging_path,
                open_lakes(self.settings, self.networks.values()),
            )
            finish_batch(connection, batch)
            report_requests(connection, self.store, self.settings.shard)
            for report in reports:
                found = {
                    finding.check.name: finding.example for finding in check_batch(connection, report.network, batch)
                }
                assert found == dict.fromkeys(found), found
        return reports

    def attest(self, periods: Periods | None = None, parts: int | None = None) -> list[NetworkReport]:
        """Continue attestations in this process, to the end or for `parts`; report to the control store."""
        done = 0

        def count() -> None:
            nonlocal done
            done += 1

        with self._batch() as (connection, batch):
            report_attestations(connection, self.store, self.settings.shard)
            reports = collect_attestations(
                connection, self.networks, periods, batch, lambda: parts is not None and done >= parts, count
            )
            finish_batch(connection, batch)
            report_attestations(connection, self.store, self.settings.shard)
        return reports

    def ask_attestation(self, principal: Principal, subject: SubjectRow, as_of: str) -> OperationRow:
        """Ask for an attestation, as if no record stood."""
        with self.store.write() as session:
            return attestations.request(session, principal, subject, as_of=as_of, stands=lambda _: False)

    def ask_history(
        self, principal: Principal, subject: SubjectRow, start: str, end: str = "now", native: str | None = None
    ) -> OperationRow:
        """Ask for a past range."""
        with self.store.write() as session:
            return operations.request_history(
                session, principal, subject, HistoryRequest(from_=start, to=end, native=native)
            )

    def operation(self, operation: OperationRow) -> OperationRow:
        """Return the current state of an operation."""
        with self.store.read() as session:
            return operations.get(session, operation.tenant_id, operation.id, operation.kind, operation.subject_key)

    def query(self, sql: str, parameters: Sequence[Any] = (), warehouse: Path | None = None) -> list[tuple[Any, ...]]:
        """Rows of a query over the warehouse."""
        with open_warehouse(warehouse or self.settings.warehouse_path) as connection:
            return connection.execute(sql, list(parameters)).fetchall()

    def published(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query over the version in force."""
        current = current_publication(self.settings.serving_dir)
        assert current is not None
        with duckdb.connect(str(self.settings.serving_dir / current.file), read_only=True) as connection:
            return connection.execute(sql).fetchall()

    def raw_rows(self, warehouse: Path | None = None) -> dict[str, list[tuple[Any, ...]]]:
        """All raw tables without batch ids and moments of collection, each in a stable order; coverage merged."""
        with open_warehouse(warehouse or self.settings.warehouse_path) as connection:
            rows = {
                table: connection.execute(f"{columns} from raw.{table} order by all").fetchall()
                for table, columns in _STABLE.items()
            }
            rows["coverage"] = connection.execute(
                """
                select network, subject_kind, address, min(from_block), max(to_block), sum(row_count)::bigint
                from (
                    select
                        *,
                        sum(is_new) over (
                            partition by network, subject_kind, address order by from_block
                        ) as range_number
                    from (
                        select
                            *,
                            coalesce(
                                from_block != lag(to_block) over (
                                    partition by network, subject_kind, address order by from_block
                                ) + 1,
                                true
                            )::integer as is_new
                        from raw.coverage
                    )
                )
                group by network, subject_kind, address, range_number
                order by all
                """
            ).fetchall()
        return rows

    def clean_rows(self, folder: Path, networks: Sequence[str] = ("local",)) -> dict[str, list[tuple[Any, ...]]]:
        """Return the raw tables of one clean cycle over the same configuration, from the current nodes."""
        warehouse = folder / "clean.duckdb"
        warehouse.unlink(missing_ok=True)
        for network in networks:
            assert self.cycle(network, warehouse=warehouse).error is None
        return self.raw_rows(warehouse)

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of the service's processes."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LEDGERMART_")}
        return {**kept, **self.variables, **more}

    def ledgermart(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the console command in a process with all modules imported.

        A cycle has a day for past data, so that it collects all of it even on a slow machine.
        """
        variables = {"LEDGERMART_CYCLE_SECONDS": "86400", **variables}
        return run_forked(console_command, arguments, self.environment(**variables))
