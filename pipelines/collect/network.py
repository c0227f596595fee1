"""One cycle of one network, from the head to the readings."""

import duckdb
import polars as pl

from control.networks.definitions import Network
from pipelines.collect.observations import observe
from pipelines.collect.segments import Collector, NetworkReport
from pipelines.collect.tail import ImplausibleHead, StaleHead, check_head, extend_tail, repair_tail
from pipelines.collect.times import repair_times
from pipelines.collect.verification import verify
from pipelines.collect.views import missing_segments, resolve_windows
from pipelines.extract.errors import ChainReorganised, ExtractError, FalseBlockTime, WrongChain
from pipelines.extract.evm.blocks import read_final_number, read_head
from pipelines.extract.evm.metadata import read_contracts
from pipelines.extract.evm.probe import probe
from pipelines.extract.evm.rpc import RpcClient
from pipelines.load.chain import HashMismatchError, record_failure, record_healthy, replace_metadata
from pipelines.load.checks import DECIMALS, run_check
from pipelines.tables.sources import TABLES

# A reorganisation while a range is read is met by reading again; a chain that moves on every attempt is reported.
_ATTEMPTS = 3


def _run(
    connection: duckdb.DuckDBPyConnection, client: RpcClient, network: Network, batch_id: int, report: NetworkReport
) -> None:
    facts = probe(client, network.chain_id, network.multicall_address)
    head = read_head(client)
    ancestor = repair_times(connection, client, network.name, head, batch_id)
    if ancestor is not None:
        report.reorganised_after = ancestor
    check_head(connection, network, head)
    final_number = max(read_final_number(client, head, network.finality_depth), _known_final(connection, network.name))
    ancestor = repair_tail(connection, client, network.name, head, network.finality_depth, batch_id)
    if ancestor is not None:
        report.reorganised_after = ancestor
    report.count("blocks", extend_tail(connection, client, network.name, head, final_number, batch_id))
    resolve_windows(connection, client, network, head, batch_id)
    collector = Collector(connection, client, network, facts, final_number, batch_id, report)
    for segment in missing_segments(connection, network.name, head.number, is_live=True):
        for _ in collector.collect(segment):
            pass
    verify(collector)
    _read_metadata(collector, head.number)
    reading = observe(collector, head)
    report.count("balance_observations", reading.balances)
    report.count("supply_observations", reading.supplies)
    report.unavailable_readings = reading.unavailable
    report.head, report.final = head.number, final_number
    record_healthy(
        connection,
        network.name,
        {
            "head_number": head.number,
            "head_hash": head.hash,
            "head_time": head.time.replace(tzinfo=None),
            "has_archive": facts.has_archive,
            "has_traces": facts.has_traces,
            "has_multicall": facts.multicall is not None,
            # Not the symbols': another name may be meant, and is told by its check alone.
            "detail": run_check(connection, DECIMALS, network.name, batch_id).example,
        },
        final_number,
        batch_id,
    )


def _known_final(connection: duckdb.DuckDBPyConnection, network: str) -> int:
    """The newest block that was final before: it stays so where a reorganisation makes the chain shorter."""
    row = connection.execute(
        "select coalesce(max(final_number), -1) from raw.network_states where network = ?", [network]
    ).fetchone()
    assert row is not None
    return int(row[0])


def _read_metadata(collector: Collector, head_number: int) -> None:
    """Read contracts that are configured (tracked or not), common or seen, and whose kind is not known yet.

    Common tokens may rest in a wallet and never be seen. Seen since the last complete observation: a cycle that failed
    half-way is made up for.
    """
    unknown = [
        address
        for (address,) in collector.connection.execute(
            """
            select address from raw.control_subjects where network = $network and kind = 'token'
            union
            select token_address from raw.common_tokens where network = $network
            union
            select distinct token_address
            from raw.token_transfers
            where
                network = $network
                and batch_id > (
                    select coalesce(max(batch_id), 0) from raw.observed_batches where network = $network
                )
            except
            select token_address
            from raw.token_metadata
            where network = $network and contract_status in ('Fungible', 'NotFungible')
            order by 1
            """,
            {"network": collector.network.name},
        ).fetchall()
    ]
    if not unknown:
        return
    contracts = read_contracts(collector.client, unknown, head_number, collector.facts.multicall)
    names = ("contract_status", "standard", "symbol", "name", "decimals", "detail")
    frame = pl.DataFrame(
        [(c.address, *(getattr(c, name) for name in names)) for c in contracts],
        schema=TABLES["token_metadata"].schema("token_address", *names),
        orient="row",
    )
    replace_metadata(collector.connection, collector.network.name, frame, collector.batch_id)
    collector.report.count("token_metadata", frame.height)


def _status(error: ExtractError) -> str:
    if isinstance(error, WrongChain):
        return "WrongChain"
    if isinstance(error, FalseBlockTime):
        return "ClockSkew"
    return "Unhealthy" if isinstance(error, StaleHead | ImplausibleHead) else "Unreachable"


def collect_network(
    connection: duckdb.DuckDBPyConnection, client: RpcClient, network: Network, batch_id: int
) -> NetworkReport:
    """Bring one network up to its node's head.

    What was collected before a failure stays, with its coverage; the rest is missing and the next cycle collects
    exactly that. A failure is recorded, and told in the report; it is not raised, so that it stops no other network.

    Args:
        connection: the open warehouse.
        client: speaks to the network's nodes.
        network: its definition.
        batch_id: the cycle that this belongs to.
    """
    report = NetworkReport(network.name)
    for attempt in range(1, _ATTEMPTS + 1):
        call: str
        covered: tuple[int | None, int | None]
        try:
            _run(connection, client, network, batch_id, report)
            break
        except (ChainReorganised, HashMismatchError) as error:
            if attempt < _ATTEMPTS:
                continue
            report.error = str(error)
            call, covered, status = "eth_getBlockByNumber", (error.block_number, None), "Unhealthy"
        except ExtractError as error:
            report.error = str(error)
            call, covered, status = error.call, (error.from_block, error.to_block), _status(error)
        except Exception as error:  # noqa: BLE001 - a defect met on one network stops no other; it fails the run
            report.error = f"{network.name}: {type(error).__name__}: {error}"
            report.defect = error
            call, covered, status = "collect", (None, None), "Unhealthy"
        record_failure(connection, network.name, status, call, covered, report.error, batch_id)
        break
    return report
