"""Reading a lake: ranges of addresses, columns of readings, and the error for a fact that differs."""

from collections.abc import Sequence

from control.ranges import BlockRange, merged
from pipelines.chain.coverage import Watched, watched_frame
from pipelines.extract.family import Header, Node
from pipelines.extract.headers import header_of
from warehouse.lakes import LakeError, OpenLake

QUANTITIES = {"balance_observations": "quantity_raw", "supply_observations": "total_supply_raw"}
"""The column of a reading with the number that was read."""


class ContradictedLakeError(LakeError):
    """The lake has another fact than this shard for the same block; neither is changed."""

    def __init__(self, network: str, table: str, block_number: int) -> None:
        super().__init__(
            f"{network}: the lake has another row of {table} in block {block_number} than this shard; "
            "docs/scaling.md says how to find the false one"
        )


def read_common_block(opened: OpenLake, node: Node, final_number: int) -> Header | None:
    """Return the newest block of the lake that is final, as the node gives it; None if the lake has none.

    Raises:
        ContradictedLakeError: the lake has another hash: the lake, or the node, is of another chain.
        ExtractError: the node did not give the header.
    """
    row = opened.run(
        "select max(block_number), max_by(block_hash, block_number) from lake.blocks where block_number <= ?",
        [final_number],
    ).fetchone()
    if row is None or row[0] is None:
        return None
    header = header_of(node.headers([row[0]]).row(0))
    if header.hash != row[1]:
        raise ContradictedLakeError(node.network.name, "blocks", header.number)
    return header


def read_ranges(
    opened: OpenLake,
    table: str,
    watched: Sequence[Watched],
    condition: str = "true",
    parameters: Sequence[str | None] = (),
) -> dict[Watched, list[BlockRange]]:
    """Return the ranges of a table of the lake, `stored`, for these addresses; united, where the condition holds."""
    opened.load("asked", watched_frame(dict.fromkeys(watched, 0)))
    found: dict[Watched, list[BlockRange]] = {}
    for kind, address, first, last in opened.run(
        f"""
        select stored.subject_kind, stored.address, stored.from_block, stored.to_block
        from lake.{table} as stored
        semi join asked on stored.subject_kind = asked.subject_kind and stored.address = asked.address
        where {condition} and stored.from_block <= stored.to_block
        """,
        parameters,
    ).fetchall():
        found.setdefault(Watched(kind, address), []).append(BlockRange(first, last))
    return {name: merged(ranges) for name, ranges in found.items()}


def read_verified(opened: OpenLake, watched: Sequence[Watched], *, is_sampled: bool) -> dict[Watched, list[BlockRange]]:
    """Return the ranges of these addresses that were read a second time: in full, or by a sample."""
    return read_ranges(opened, "verified_ranges", watched, f"stored.is_sampled = {is_sampled}")
