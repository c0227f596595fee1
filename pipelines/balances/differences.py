"""Bisection: the blocks in which balances and supplies changed without a movement.

A supply is the balance of a holder named `supply`, which mints and burns move. A difference lies between the last
reading that movements explain and the first one that they do not. All such ranges are halved together, by readings
that are compared with the balance according to movements. The models then book the difference at the block where these
readings show it. The next cycle continues where one stops. If the node lacks the state, a difference remains where it
was seen.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from pipelines.balances.readings import insert_balance_observations, insert_supply_observations
from pipelines.chain.segments import Collector
from pipelines.extract.errors import ChainReorganised, StateUnavailable
from pipelines.extract.family import BALANCES, PAST_BALANCES, Header, Node
from pipelines.raw.builds import has_relation
from pipelines.raw.database import named

_VIEW = "requests__readings"
_SUPPLY = "supply"


@dataclass(eq=False)
class _Difference:
    """A balance or supply that movements explain at the end of one block and not at the end of a later one.

    Attributes:
        balances: balances according to movements from the first block on: block and quantity, ascending; 0 before.
        tenants: tenants that may see its readings.
        read: block hash and quantity of the ends that were read here, by block.
    """

    token: str
    holder: str
    explained_to: int
    seen_at: int
    balances: Sequence[tuple[int, str]]
    tenants: Sequence[str]
    read: dict[int, tuple[str, str]] = field(default_factory=dict)

    @property
    def is_located(self) -> bool:
        return self.seen_at - self.explained_to <= 1

    @property
    def middle(self) -> int:
        return (self.explained_to + self.seen_at) // 2

    def narrow(self, block_hash: str, quantity: str) -> None:
        """Move one end of the range to its middle, by the balance read there."""
        middle = self.middle
        self.read[middle] = (block_hash, quantity)
        expected = next((balance for block, balance in reversed(self.balances) if block <= middle), "0")
        if quantity == expected:
            self.explained_to = middle
        else:
            self.seen_at = middle

    def ends(self) -> list[tuple[str, str, int, str, str, Sequence[str]]]:
        """Return those ends that were read here, as rows of BALANCES with their tenants."""
        blocks = (self.explained_to, self.seen_at)
        return [
            (self.token, self.holder, block, *self.read[block], self.tenants) for block in blocks if block in self.read
        ]


def locate(collector: Collector, head: Header, most_reads: int) -> int:
    """Narrow down the differences found by the models, and store the readings at their ends.

    Args:
        collector: the network's, in this cycle.
        head: the newest block in use.
        most_reads: balances and supplies read at most.

    Returns:
        Number of balances and supplies stored.

    Raises:
        ExtractError: a reading failed; nothing is stored.
    """
    connection, network = collector.connection, collector.network
    if PAST_BALANCES not in collector.capabilities or not has_relation(connection, _VIEW):
        return 0
    parameters = {"network": network, "head": head.number, "most": most_reads}
    pending = connection.execute(*named("pending_differences", parameters)).fetchall()
    differences = [_Difference(*row) for row in pending]
    _halve(collector.node, differences, most_reads)
    if not any(one.read for one in differences):
        return 0
    schema = {**BALANCES, "tenant_ids": pl.List(pl.String)}
    ends = pl.DataFrame([end for one in differences for end in one.ends()], schema=schema, orient="row")
    # Differences of several tenants may end with one reading.
    read = ends.explode("tenant_ids").group_by(*BALANCES, maintain_order=True).agg(pl.col("tenant_ids").unique().sort())
    hashes = collector.stored_hashes(read["block_number"].unique().to_list())
    for number, block_hash in read.select("block_number", "block_hash").iter_rows():
        if hashes[number] != block_hash:
            names = (network, collector.node.header_call, number, number)
            raise ChainReorganised(*names, "the chain moved while balances were read", block_number=number)
    is_supply = pl.col("holder_address") == _SUPPLY
    balances, supplies = read.filter(~is_supply), read.filter(is_supply)
    insert_balance_observations(connection, network, balances, "Difference", collector.batch_id)
    supplies = supplies.rename({"quantity_raw": "total_supply_raw"})
    insert_supply_observations(connection, network, supplies, collector.batch_id)
    return read.height


def _halve(node: Node, differences: Sequence[_Difference], most_reads: int) -> None:
    """Halve the ranges until each is one block wide, has no states, or the readings are used up."""
    wide = list(differences)
    while wide:
        most_reads -= len(wide)
        by_block: dict[int, list[_Difference]] = defaultdict(list)
        for one in wide:
            by_block[one.middle].append(one)
        wide = []
        headers = node.headers(sorted(by_block))
        for number, block_hash in headers.select("block_number", "block_hash").iter_rows():
            try:
                read = _read(node, by_block[number], number, block_hash)
            except StateUnavailable:
                continue
            for one, quantity in read:
                # If a contract returns no balance there, do not narrow its range further.
                if quantity is not None:
                    one.narrow(block_hash, quantity)
                    wide.append(one)
        wide = [one for one in wide if not one.is_located][: max(most_reads, 0)]


def _read(
    node: Node, differences: Sequence[_Difference], number: int, block_hash: str
) -> list[tuple[_Difference, str | None]]:
    """Read the balances and supplies of differences at the end of a block; None where there is no number.

    Raises:
        StateUnavailable: the node has no state of the block.
    """
    pairs = sorted({(one.token, one.holder) for one in differences if one.holder != _SUPPLY})
    tokens = sorted({one.token for one in differences if one.holder == _SUPPLY})
    read: dict[tuple[str, str], str | None] = {}
    if pairs:
        balances = node.balances(pairs, number, block_hash)
        read |= {(token, holder): quantity for token, holder, *_, quantity in balances.iter_rows()}
    if tokens:
        supplies = node.supplies(tokens, number, block_hash)
        read |= {(token, _SUPPLY): quantity for token, *_, quantity in supplies.iter_rows()}
    return [(one, read.get((one.token, one.holder))) for one in differences]
