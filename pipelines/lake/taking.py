"""Taking: missing blocks that the lake covers are stored from there, before the node is asked.

Malformed, doubled or contradictory rows of the lake are refused with their segment, and the node gives its blocks.
"""

from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence

import polars as pl

from control.ranges import BlockRange, intersection
from pipelines.balances.readings import insert_balance_observations, insert_supply_observations
from pipelines.chain.coverage import Watched, record_verified, watched_frame
from pipelines.chain.covered import cut
from pipelines.chain.finality import read_known_chain
from pipelines.chain.missing import segments_of
from pipelines.chain.rows import HashMismatchError
from pipelines.chain.segments import Collector
from pipelines.extract.data_sets import EXPORTED
from pipelines.extract.errors import ExtractError, FalseBlockTime
from pipelines.extract.families import family_of
from pipelines.extract.family import BALANCES, HEADERS, SUPPLIES, Part
from pipelines.lake.reading import QUANTITIES, read_common_block, read_ranges, read_verified
from pipelines.lake.tables import READINGS, names_of, row_tables
from pipelines.raw.database import transaction
from pipelines.rows import Origin, Segment
from pipelines.tables.table import BIGNUM, RowTable
from warehouse.lakes import Lake, LakeError, OpenLake

_CALL = "lake"
# As for files: each write costs some 15 ms of processor time, regardless of its size.
_PART_ROWS = 100_000


class LakeUnreadable(ExtractError):
    """The lake cannot be read for now, so its coverage is unknown."""


class _Refused(Exception):
    """Rows of the lake that must not be stored; the message says which."""


def take(collector: Collector, lake: Lake, segments: Sequence[Segment]) -> Generator[Segment]:
    """Store the parts of missing segments that the lake covers, with readings that this shard's tenants may see.

    Args:
        collector: collects on the network.
        lake: of the network.
        segments: missing blocks.

    Yields:
        The blocks of each part after storing it.

    Raises:
        LakeUnreadable: catalogue or store do not answer, or the lake is of another chain.
        ExtractError: the node did not give the header of the block that is compared.
    """
    # The lake has settled blocks alone; a new shard does not know yet which ones are.
    settled = read_known_chain(collector.connection, collector.network).settled_number
    newest = collector.final_number if settled < 0 else settled
    wanted: dict[Watched, list[BlockRange]] = defaultdict(list)
    for segment in segments:
        if segment.covered.first <= newest:
            blocks = BlockRange(segment.covered.first, min(segment.covered.last, newest))
            for address in segment.addresses:
                wanted[Watched(segment.kind, address)].append(blocks)
    if not wanted:
        return
    try:
        with lake.open() as opened:
            yield from _Taking(collector, opened).steps(wanted)
    except LakeError as error:
        raise LakeUnreadable(collector.network, _CALL, detail=str(error)) from error


def has_bulk_run(network: str, lake: Lake) -> bool:
    """Return whether a bulk run collects the history of the network.

    Raises:
        LakeUnreadable: the catalogue does not answer.
    """
    try:
        return lake.has_bulk_run()
    except LakeError as error:
        raise LakeUnreadable(network, _CALL, detail=str(error)) from error


class _Taking:
    """One reading of the lake."""

    def __init__(self, collector: Collector, opened: OpenLake) -> None:
        self.collector = collector
        self.opened = opened
        self.tables = row_tables(collector.node.network)
        self.form = family_of(collector.node.network).data_set_forms[EXPORTED]

    def steps(self, wanted: dict[Watched, list[BlockRange]]) -> Generator[Segment]:
        """Store the covered parts of the wanted ranges; see `take`."""
        origins = self._origins(wanted)
        if not origins:
            return
        # The lake, or the node, may be of another chain.
        read_common_block(self.opened, self.collector.node, self.collector.final_number)
        for origin, held in origins.items():
            for segment in segments_of(held, {}):
                try:
                    tables = self._copy(segment)
                    yield from self.collector.take(segment, self._parts(segment, tables), origin)
                    self._take_verified(segment)
                    self._take_readings(segment)
                except (_Refused, HashMismatchError, FalseBlockTime) as error:
                    told = LakeUnreadable(
                        self.collector.network, _CALL, *segment.covered, f"its rows are refused: {error}"
                    )
                    self.collector.note(told, str(told))

    def _origins(self, wanted: dict[Watched, list[BlockRange]]) -> dict[Origin, dict[Watched, list[BlockRange]]]:
        """Return the wanted ranges that the lake covers, by origin."""
        found: dict[Origin, dict[Watched, list[BlockRange]]] = defaultdict(dict)
        self.opened.load("asked", watched_frame(dict.fromkeys(wanted, 0)))
        origins = self.opened.run(
            """
            select distinct stored.provider, stored.data_set
            from lake.coverage as stored
            semi join asked on stored.subject_kind = asked.subject_kind and stored.address = asked.address
            order by all
            """
        ).fetchall()
        same = "stored.provider = ? and stored.data_set is not distinct from ?"
        for provider, data_set in origins:
            held = read_ranges(self.opened, "coverage", list(wanted), same, [provider, data_set])
            for watched, ranges in held.items():
                if shared := intersection(wanted[watched], ranges):
                    found[Origin(provider, data_set, "lake")][watched] = shared
        return found

    def _copy(self, segment: Segment) -> list[RowTable]:
        """Copy the rows of a segment into the lake's engine, check them, and return their tables.

        Raises:
            _Refused: a row or header is malformed, a row is doubled, or of another block than the lake's header.
        """
        tables = [table for table in self.tables if segment.kind in table.kinds]
        first, last = segment.covered
        for table in tables:
            named = " or ".join(f"{column} in (select unnest($addresses))" for column in table.addressed(segment.kind))
            self.opened.run(
                f"""
                create or replace temp table taken_{table.name} as
                select * from lake.{table.name}
                where block_number between $first and $last and ({named})
                """,
                {"first": first, "last": last, "addresses": list(segment.addresses)},
            )
            self._check(table)
        header = self.opened.run(
            f"""
            select block_number from lake.blocks
            where block_number between ? and ? and (({self.form.block_check}) is not true or block_time is null)
            limit 1
            """,
            [first, last],
        ).fetchone()
        if header is not None:
            raise _Refused(f"the header of block {header[0]} is malformed")
        return tables

    def _check(self, table: RowTable) -> None:
        copied, key = f"taken_{table.name}", ", ".join(table.key)
        amounts = [column.name for column in table.columns if column.type == BIGNUM]
        checks = [f"({self.form.checks[table.name]})", self.form.block_check]
        checks += [f"coalesce(regexp_full_match({name}, '[0-9]+'), true)" for name in amounts]
        faults = {
            "is malformed": f"from {copied} where ({' and '.join(checks)}) is not true",
            "is there twice": f"from {copied} group by {key} having count(*) > 1",
            "is of another block than the lake's header": f"from {copied} as rows semi join lake.blocks as headers "
            "on rows.block_number = headers.block_number and rows.block_hash is distinct from headers.block_hash",
        }
        for fault, rows in faults.items():
            found = self.opened.run(f"select {key} {rows} order by all limit 1").fetchone()
            if found is not None:
                raise _Refused(f"{table.named(found)} {fault}")

    def _parts(self, segment: Segment, tables: Sequence[RowTable]) -> Iterator[Part]:
        """Yield the copied rows of a segment in parts of a bounded size."""
        numbers = " union all ".join(f"select block_number from taken_{table.name}" for table in tables)
        counts = self.opened.run(
            f"select block_number, count(*) from ({numbers}) group by block_number order by block_number"
        ).fetchall()
        for covered, _ in cut(counts, segment.covered, _PART_ROWS):
            rows = {table.name: self._rows(table, covered) for table in tables}
            yield Part(covered, rows, headers=self._headers(numbers, covered))

    def _rows(self, table: RowTable, covered: BlockRange) -> pl.DataFrame:
        return (
            self.opened.run(
                f"select {', '.join(names_of(table.name))} from taken_{table.name} where block_number between ? and ? "
                f"order by {', '.join(table.key)}",
                list(covered),
            )
            .pl()
            .cast(table.row_schema)
        )

    def _headers(self, numbers: str, covered: BlockRange) -> pl.DataFrame:
        """Return the headers of a part's blocks with rows, and of its ends where the lake has them."""
        return (
            self.opened.run(
                f"""
                select block_number, block_hash, parent_hash, block_time
                from lake.blocks
                where
                    block_number between $first and $last
                    and (block_number in (from ({numbers})) or block_number in ($first, $last))
                order by block_number
                """,
                {"first": covered.first, "last": covered.last},
            )
            .pl()
            .cast(HEADERS)
        )

    def _take_verified(self, segment: Segment) -> None:
        """Record which blocks of a segment were read a second time."""
        watched = [Watched(segment.kind, address) for address in segment.addresses]
        for is_sampled in (False, True):
            held = read_verified(self.opened, watched, is_sampled=is_sampled)
            shared = {name: intersection(ranges, [segment.covered]) for name, ranges in held.items()}
            for verified in segments_of(shared, {}):
                with transaction(self.collector.connection):
                    record_verified(
                        self.collector.connection,
                        self.collector.network,
                        verified.kind,
                        verified.addresses,
                        verified.covered,
                        is_sampled=is_sampled,
                    )

    def _take_readings(self, segment: Segment) -> None:
        """Store the readings within a segment that were made for tenants of this shard."""
        collector = self.collector
        tenants = [
            tenant
            for (tenant,) in collector.connection.execute(
                "select distinct tenant_id from raw.control_subjects where network = ? and list_contains(?, address)",
                [collector.network, list(segment.addresses)],
            ).fetchall()
        ]
        column = "token_address" if segment.kind == "token" else "holder_address"
        for table in READINGS if segment.kind == "token" else READINGS[:1]:
            frame = self.opened.run(
                f"""
                select distinct
                    * replace (list_filter(tenant_ids, lambda tenant: list_contains($tenants, tenant)) as tenant_ids)
                from lake.{table}
                where
                    block_number between $first - 1 and $last
                    and {column} in (select unnest($addresses))
                    and list_has_any(tenant_ids, $tenants)
                order by all
                """,
                {
                    "first": segment.covered.first,
                    "last": segment.covered.last,
                    "addresses": list(segment.addresses),
                    "tenants": tenants,
                },
            ).pl()
            numbers = frame.select(pl.col(QUANTITIES[table]).drop_nulls().str.contains(r"^[0-9]{1,78}$").all())
            if not numbers.item() or (table == "balance_observations" and frame["purpose"].has_nulls()):
                raise _Refused(f"a row of {table} is malformed")
            if not frame.is_empty():
                self._store_readings(table, frame)

    def _store_readings(self, table: str, frame: pl.DataFrame) -> None:
        collector = self.collector
        collector.store_headers(frame["block_number"].unique())
        if table == "supply_observations":
            insert_supply_observations(
                collector.connection, collector.network, frame.select(*SUPPLIES, "tenant_ids"), collector.batch_id
            )
            return
        for (purpose,), readings in frame.group_by("purpose", maintain_order=True):
            insert_balance_observations(
                collector.connection,
                collector.network,
                readings.select(*BALANCES, "tenant_ids"),
                str(purpose),
                collector.batch_id,
            )
