"""One cycle of one network, from the head to the readings."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import duckdb
import polars as pl

from control.networks.definitions import Network
from pipelines.collect.observations import observe
from pipelines.collect.tail import StaleHead, extend_tail, repair_tail
from pipelines.collect.windows import Segment, missing_segments, resolve_windows
from pipelines.extract.errors import ChainReorganised, ExtractError, WrongChain
from pipelines.extract.evm.blocks import (
    TRANSACTION_SCHEMA,
    Header,
    read_final_number,
    read_head,
    read_headers,
    read_wallet_transactions,
)
from pipelines.extract.evm.logs import TransferFilter, Transfers, fetch_transfers
from pipelines.extract.evm.metadata import read_contracts
from pipelines.extract.evm.probe import probe
from pipelines.extract.evm.rpc import RpcClient
from pipelines.load.chain import (
    HashMismatchError,
    insert_blocks,
    missing_headers,
    record_collection,
    record_failure,
    record_healthy,
    replace_metadata,
    replace_token_range,
    replace_wallet_range,
)
from pipelines.load.ranges import BlockRange

# One write holds at most about this many transfers: 25,000 rows are some 15 MB decoded, and the cost of a transaction
# (a few milliseconds) disappears beside them. 50,000 cost no less CPU and 20 MiB more at the peak.
ROWS_PER_WRITE = 25_000
# ... and about this many blocks, so that a long range with few rows is not read in vain when its end fails.
_BLOCKS_PER_WRITE = 10_000
# Where whole blocks with their transactions are read too: some 100 kB each on a busy network.
_FULL_BLOCKS_PER_WRITE = 500
# A reorganisation while a range is read is met by reading again; a chain that moves on every attempt is reported.
_ATTEMPTS = 3


@dataclass
class NetworkReport:
    """What one cycle did on one network."""

    network: str
    head: int | None = None
    final: int | None = None
    rows: dict[str, int] = field(default_factory=dict)
    ranges: list[BlockRange] = field(default_factory=list)
    reorganised_after: int | None = None
    unavailable_anchors: int = 0
    error: str | None = None
    defect: Exception | None = None

    def count(self, table: str, rows: int) -> None:
        """Add to the rows written to a table."""
        self.rows[table] = self.rows.get(table, 0) + rows


class _Cycle:
    """The state that the steps of one network's cycle share."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        client: RpcClient,
        network: Network,
        batch_id: int,
        report: NetworkReport,
    ) -> None:
        self.connection = connection
        self.client = client
        self.network = network
        self.batch_id = batch_id
        self.report = report

    def run(self) -> None:
        facts = probe(self.client, self.network.chain_id, self.network.multicall_address)
        head = read_head(self.client)
        final_number = read_final_number(self.client, head, self.network.finality_depth)
        name, batch = self.network.name, self.batch_id
        ancestor = repair_tail(self.connection, self.client, name, head, self.network.finality_depth, batch)
        if ancestor is not None:
            self.report.reorganised_after = ancestor
        self.report.count("blocks", extend_tail(self.connection, self.client, name, head, final_number, batch))
        resolve_windows(self.connection, self.client, name, head, batch)
        self._collect_tokens(missing_segments(self.connection, name, "token", head.number))
        self._collect_wallets(missing_segments(self.connection, name, "wallet", head.number))
        self._read_metadata(head, facts.multicall)
        reading = observe(self.connection, self.client, name, head, facts.multicall, batch)
        self.report.count("balance_observations", reading.balances)
        self.report.count("supply_observations", reading.supplies)
        self.report.unavailable_anchors = reading.unavailable
        self.report.head, self.report.final = head.number, final_number
        record_healthy(
            self.connection,
            name,
            {
                "head_number": head.number,
                "head_hash": head.hash,
                "head_time": head.time.replace(tzinfo=None),
                "has_archive": facts.has_archive,
                "has_traces": facts.has_traces,
                "has_multicall": facts.multicall is not None,
            },
            final_number,
            batch,
        )

    def _store_headers(self, numbers: Iterable[int]) -> None:
        missing = missing_headers(self.connection, self.network.name, numbers)
        if missing:
            insert_blocks(self.connection, self.network.name, read_headers(self.client, missing), self.batch_id)
            self.report.count("blocks", len(missing))

    def _collected(self, table: str, covered: BlockRange, rows: int) -> None:
        record_collection(self.connection, self.network.name, table, covered, rows, self.batch_id)
        self.report.count(table, rows)
        self.report.ranges.append(covered)

    def _collect_tokens(self, segments: list[Segment]) -> None:
        for segment in segments:
            parts = fetch_transfers(
                self.client,
                TransferFilter(tokens=frozenset(segment.addresses)),
                segment.covered.first,
                segment.covered.last,
                max_range=self.network.max_log_range,
            )
            for covered, transfers in _gathered(parts, _BLOCKS_PER_WRITE):
                self._store_headers([*transfers["block_number"].unique(), covered.last])
                replace_token_range(
                    self.connection,
                    self.network.name,
                    segment.addresses,
                    covered,
                    transfers,
                    self.client.provider,
                    self.batch_id,
                )
                self._collected("token_transfers", covered, transfers.height)

    def _collect_wallets(self, segments: list[Segment]) -> None:
        for segment in segments:
            wallets = frozenset(segment.addresses)
            parts = fetch_transfers(
                self.client,
                [TransferFilter(senders=wallets), TransferFilter(recipients=wallets)],
                segment.covered.first,
                segment.covered.last,
                max_range=min(self.network.max_log_range or _FULL_BLOCKS_PER_WRITE, _FULL_BLOCKS_PER_WRITE),
            )
            for covered, transfers in _gathered(parts, _FULL_BLOCKS_PER_WRITE):
                transactions = pl.concat(
                    [
                        pl.DataFrame(schema=TRANSACTION_SCHEMA),
                        *read_wallet_transactions(self.client, covered.first, covered.last, wallets),
                    ]
                )
                numbers = pl.concat([transfers["block_number"], transactions["block_number"]]).unique()
                self._store_headers([*numbers, covered.last])
                replace_wallet_range(
                    self.connection,
                    self.network.name,
                    segment.addresses,
                    covered,
                    transfers,
                    transactions,
                    self.client.provider,
                    self.batch_id,
                )
                self._collected("token_transfers", covered, transfers.height)
                self._collected("transactions", covered, transactions.height)

    def _read_metadata(self, head: Header, multicall: str | None) -> None:
        """Read contracts that are configured, tracked or not, or were seen, and whose kind is not known yet.

        Seen since the last complete observation: a cycle that failed half-way is made up for.
        """
        unknown = [
            address
            for (address,) in self.connection.execute(
                """
                select address from raw.control_subjects where network = $network and kind = 'token'
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
                {"network": self.network.name},
            ).fetchall()
        ]
        if not unknown:
            return
        contracts = read_contracts(self.client, unknown, head.number, multicall)
        names = ("contract_status", "standard", "symbol", "name", "decimals", "detail")
        frame = pl.DataFrame(
            [(c.address, *(getattr(c, name) for name in names)) for c in contracts],
            schema={"token_address": pl.String, **dict.fromkeys(names, pl.String), "decimals": pl.Int32},
            orient="row",
        )
        replace_metadata(self.connection, self.network.name, frame, self.batch_id)
        self.report.count("token_metadata", frame.height)


def _gathered(parts: Iterable[Transfers], most_blocks: int) -> Iterator[tuple[BlockRange, pl.DataFrame]]:
    """Join consecutive answers into writes of a bounded size; what came before a failure is given out before it."""
    frames: list[pl.DataFrame] = []
    first, last, rows = 0, 0, 0
    try:
        for part in parts:
            first = part.from_block if not frames else first
            last = part.to_block
            frames.append(part.rows)
            rows += part.rows.height
            if rows >= ROWS_PER_WRITE or last - first + 1 >= most_blocks:
                yield BlockRange(first, last), pl.concat(frames)
                frames, rows = [], 0
    except ExtractError:
        if frames:
            yield BlockRange(first, last), pl.concat(frames)
        raise
    if frames:
        yield BlockRange(first, last), pl.concat(frames)


def _status(error: ExtractError) -> str:
    if isinstance(error, WrongChain):
        return "WrongChain"
    return "Unhealthy" if isinstance(error, StaleHead) else "Unreachable"


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
    cycle = _Cycle(connection, client, network, batch_id, report)
    for attempt in range(1, _ATTEMPTS + 1):
        call: str
        covered: tuple[int | None, int | None]
        try:
            cycle.run()
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
