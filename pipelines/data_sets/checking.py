"""Checks of staged rows against the node, before any of them is stored.

Hashes and times of blocks, rows of sampled ranges, supplies and sampled balances at both ends are compared. The block
decides where rows differ: its receipts, recomputed to its hash. Without such a proof the file is refused, and the
difference goes to the second readings, which judge it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from control.networks import sampling
from control.ranges import BlockRange
from pipelines.chain.comparison import differing_blocks, fingerprint, height, of_segment, sample
from pipelines.chain.coverage import Watched
from pipelines.chain.disputes import Answer, read_seed, record_answer, record_verification
from pipelines.chain.headers import hashes_of
from pipelines.chain.segments import Collector
from pipelines.chain.times import first_conflict
from pipelines.data_sets.balances import BalanceCheck
from pipelines.data_sets.errors import FileRefused
from pipelines.data_sets.staged import Staged
from pipelines.extract.errors import NotProvable
from pipelines.extract.family import PROVABLE, Header
from pipelines.rows import Segment
from pipelines.tables.families import ROW_TABLES

# Blocks of stored headers that are compared at once.
_STEP = 100_000


@dataclass
class _Checked:
    """Numbers of comparisons."""

    headers: int = 0
    blocks: int = 0
    balances: int = 0
    unexplained: int = 0

    def __str__(self) -> str:
        moved = f"; {self.unexplained} balances change without movements" if self.unexplained else ""
        return (
            f"compared with the node: {self.headers} block hashes, the rows of {self.blocks} blocks, "
            f"{self.balances} balances and supplies{moved}"
        )


def check(collector: Collector, head: Header, staged: Staged, segments: Sequence[Segment]) -> str:
    """Compare the staged rows of some segments with the node.

    Returns:
        A description of the comparisons.

    Raises:
        FileRefused: a row, a hash or a time differs from the chain; names block and row.
        ExtractError: the node gave no usable answer; nothing follows about the file.
    """
    checked = _Checked()
    seed = read_seed(collector.connection, collector.network)
    covered = BlockRange(min(one.covered.first for one in segments), max(one.covered.last for one in segments))
    _check_headers(collector, staged, covered, seed, checked)
    for segment in segments:
        for chosen in sample(segment.covered, seed):
            _compare(collector, staged, segment._replace(covered=chosen))
            checked.blocks += chosen.last - chosen.first + 1
    balances = BalanceCheck(collector.node, head, staged, seed)
    for segment in segments:
        if segment.kind == "native":
            continue
        for address, block in balances.differences(segment):
            # The balance changed in this block by something else than the file's rows.
            of_block = Segment(segment.kind, BlockRange(block, block), (address,))
            _compare(collector, staged, of_block)
            checked.unexplained += 1
    checked.balances = balances.compared
    return str(checked)


def _check_headers(collector: Collector, staged: Staged, covered: BlockRange, seed: str, checked: _Checked) -> None:
    """Compare hashes and times of blocks with rows: with all stored headers, and a sample with the node."""
    headers = staged.headers(covered)
    if headers.is_empty():
        return
    for known in headers.iter_slices(_STEP):
        hashes = hashes_of(collector.connection, collector.network, known["block_number"].to_list())
        for number, hash_ in known.select("block_number", "block_hash").iter_rows():
            if hashes.get(number, hash_) != hash_:
                raise _other_chain(number)
    conflict = first_conflict(collector.connection, collector.network, headers)
    if conflict is not None:
        raise FileRefused(f"block {conflict[0]} has a time that does not fit those of the chain")
    inner = headers[1:-1]
    drawn = inner.sample(min(sampling.HEADERS_PER_UNIT, inner.height), seed=int(seed[:8], 16))
    chosen = pl.concat([headers[:1], drawn, headers[-1:]]).unique("block_number").sort("block_number")
    told = collector.node.headers(chosen["block_number"].to_list())
    columns = ["block_number", "block_hash", "block_time"]
    for (number, hash_, time), (_, right_hash, right_time) in zip(
        chosen.select(columns).iter_rows(), told.select(columns).iter_rows(), strict=True
    ):
        if hash_ != right_hash:
            raise _other_chain(number)
        if time != right_time:
            raise FileRefused(f"block {number} has the time {time}, on the chain it is {right_time}")
    checked.headers = chosen.height


def _other_chain(number: int) -> FileRefused:
    return FileRefused(f"block {number} has another hash than on the chain: the file is of another chain, or damaged")


def _compare(collector: Collector, staged: Staged, segment: Segment) -> None:
    """Compare the rows of a short segment with the node's, and have each difference judged."""
    given = staged.rows(segment)
    for part in collector.node.collect(segment, collector.final_number):
        of_part = segment._replace(covered=part.covered)
        read = {name: of_segment(frame, name, of_part) for name, frame in part.rows.items()}
        known = {name: of_segment(given[name], name, of_part) for name in read}
        for block, addresses in sorted(differing_blocks(of_part, known, read).items()):
            _judge(collector, staged, Segment(segment.kind, BlockRange(block, block), tuple(addresses)), known, read)


def _judge(
    collector: Collector,
    staged: Staged,
    segment: Segment,
    given: Mapping[str, pl.DataFrame],
    read: Mapping[str, pl.DataFrame],
) -> None:
    """Judge the rows of one block that differ between the files (`given`) and the node (`read`).

    Raises:
        FileRefused: the files' rows are not those of the block, or it cannot be known.
    """
    block = segment.covered.first
    given = {name: of_segment(frame, name, segment) for name, frame in given.items()}
    read = {name: of_segment(frame, name, segment) for name, frame in read.items()}
    proven = _proven(collector, segment)
    judged_by = "Open" if proven is None else "Proof"
    if proven is not None:
        right = {name: of_segment(frame, name, segment) for name, frame in proven.items()}
        if fingerprint(right) == fingerprint(given):
            # The node's answer was wrong, and the files are right.
            return
    named = _difference(given, read if proven is None else right)
    record_verification(
        collector.connection,
        collector.network,
        segment.covered,
        f"data set {staged.unit.data_set.name}",
        (height(read), height(given)),
        (0, 0),
        judged_by,
        collector.batch_id,
    )
    if proven is None:
        for address in segment.addresses:
            of_address = segment._replace(addresses=(address,))
            rows = {name: of_segment(frame, name, of_address) for name, frame in given.items()}
            answer = Answer(Watched(segment.kind, address), block, fingerprint(rows), height(read), height(rows))
            provider = f"data set {staged.unit.data_set.name}"
            record_answer(collector.connection, collector.network, answer, provider, collector.batch_id)
    how = "the receipts of the block prove it" if proven is not None else "the node says so, and no proof decides"
    raise FileRefused(f"{named}; {how}")


def _proven(collector: Collector, segment: Segment) -> Mapping[str, pl.DataFrame] | None:
    """Read the rows of a block that the node can prove; None where it cannot."""
    if PROVABLE not in collector.capabilities or segment.kind == "native":
        return None
    block = segment.covered.first
    header = collector.node.headers([block])
    try:
        return collector.node.proven(segment, {block: header["block_hash"][0]})
    except NotProvable as error:
        collector.note(error, f"data set: {error}")
        return None


def _difference(given: Mapping[str, pl.DataFrame], right: Mapping[str, pl.DataFrame]) -> str:
    """Describe the first row that differs."""
    for name, frame in right.items():
        table = ROW_TABLES[name]
        keys = list(table.key)
        of_file = given[name].select(frame.columns)
        for rows, others, told in (
            (frame, of_file, "is on the chain and not in the file"),
            (of_file, frame, "is in the file and not on the chain"),
        ):
            for key in rows.join(others, on=keys, how="anti").sort(keys).select(keys).head(1).rows():
                return f"{table.named(key)} {told}"
        both = of_file.join(frame, on=keys, suffix="_right").sort(keys)
        for column in (name for name in frame.columns if name not in keys):
            differing = both.filter(pl.col(column).ne_missing(pl.col(f"{column}_right")))
            for row in differing.select(*keys, column, f"{column}_right").head(1).rows():
                named = table.named(row[: len(keys)])
                return f"{column} of {named} is {row[-2]}, on the chain it is {row[-1]}"
    return "its rows differ from those of the chain"
