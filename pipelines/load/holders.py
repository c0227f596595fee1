"""What of tokens' supplies no holder has, how far it was searched who may have it, and who was found."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import duckdb
import polars as pl

from pipelines.load.frames import registered
from pipelines.load.state import has_relation
from pipelines.load.warehouse import named, transaction
from pipelines.ranges import BlockRange

_VIEW = "int_unattributed_supplies"


class Search(NamedTuple):
    """The search for holders of a tracked token: how far it got.

    Attributes:
        created: first block of the token, where its tenant knows it.
        block, position: of the transaction that was gone through last; -1 before the first.
        readings: transactions and balances that were read for it.
    """

    subject_key: int
    tenant_id: str
    token: str
    created: int | None
    covered: BlockRange
    block: int
    position: int
    readings: int

    @property
    def is_new(self) -> bool:
        return self.block < 0


class Transaction(NamedTuple):
    """A transaction that moved a token; `sender` None where no stored row tells it."""

    block: int
    position: int
    hash: str
    sender: str | None


def begin_searches(connection: duckdb.DuckDBPyConnection, network: str, batch_id: int) -> None:
    """Begin the searches of what remains of supplies by the newest build, and was not searched yet.

    To be called before the cycle's readings are recorded as made: nothing is compared where no build came after those
    of the cycle before.
    """
    if not has_relation(connection, _VIEW):
        return
    built = connection.execute(
        """
        select (select max(batch_id) from raw.transforms) >= max(batch_id) from raw.observed_batches where network = ?
        """,
        [network],
    ).fetchone()
    if built is None or not built[0]:
        return
    parameters = {"network": network}
    with transaction(connection):
        connection.execute(
            f"""
            create or replace temp table remainders as
            select subject_key, remainder_raw from intermediate.{_VIEW} where network = $network
            """,
            parameters,
        )
        # What is another remainder now is searched anew, once the search that goes on came to its end.
        connection.execute(
            """
            delete from raw.searched_remainders as searched
            where
                network = $network
                and not exists (
                    select 1 from remainders
                    where
                        remainders.subject_key = searched.subject_key
                        and (searched.from_block is not null or remainders.remainder_raw = searched.remainder_raw)
                )
            """,
            parameters,
        )
        connection.execute(
            """
            update raw.searched_remainders as searched
            set remainder_raw = remainders.remainder_raw
            from remainders
            where searched.subject_key = remainders.subject_key and searched.from_block is not null
            """
        )
        connection.execute(
            """
            insert into raw.searched_remainders
            select $network, subject_key, remainder_raw, -1, -1, 0, $batch
            from remainders
            anti join raw.searched_remainders as searched on remainders.subject_key = searched.subject_key
            """,
            {**parameters, "batch": batch_id},
        )


def open_searches(connection: duckdb.DuckDBPyConnection, network: str) -> list[Search]:
    """The searches that go on, the oldest first."""
    rows = connection.execute(*named("open_searches", {"network": network})).fetchall()
    return [
        Search(key, tenant, token, created, BlockRange(first, last), *reached)
        for key, tenant, token, created, first, last, *reached in rows
    ]


def next_transactions(
    connection: duckdb.DuckDBPyConnection, network: str, search: Search, most: int
) -> list[Transaction]:
    """The transactions that a search is to go through next, in their order."""
    parameters = {
        "network": network,
        "token": search.token,
        "first": search.covered.first,
        "last": search.covered.last,
        "block": search.block,
        "position": search.position,
        "most": most,
    }
    return [Transaction(*row) for row in connection.execute(*named("next_transactions", parameters)).fetchall()]


def unknown_holders(
    connection: duckdb.DuckDBPyConnection, search: Search, addresses: Collection[str]
) -> frozenset[str]:
    """Those of the addresses of which the search's tenant knows no balance of the token."""
    asked = pl.DataFrame({"address": sorted(addresses)}, schema={"address": pl.String})
    with registered(connection, asked=asked):
        rows = connection.execute(
            """
            select address from asked
            except
            select holder_address from intermediate.int_balances_latest where subject_key = $subject
            except
            select holder_address from raw.found_holders where subject_key = $subject
            """,
            {"subject": search.subject_key},
        ).fetchall()
    return frozenset(address for (address,) in rows)


def record_search(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    search: Search,
    found: Sequence[tuple[str, int]],
    last: Transaction | None,
    readings: int,
    batch_id: int,
) -> None:
    """Record the holders that were found with their balances, and how far the search got.

    Args:
        last: the transaction that was gone through last; None: the search came to its end.
        readings: that this took.
    """
    with transaction(connection):
        connection.execute(
            "insert into raw.found_holders select ?, ?, unnest(?::varchar[]), ?",
            [network, search.subject_key, [holder for holder, _ in found], batch_id],
        )
        connection.execute(
            """
            update raw.searched_remainders
            set
                remainder_raw = remainder_raw - $found::varchar::bignum,
                from_block = $block,
                from_position = $position,
                reading_count = reading_count + $readings,
                batch_id = $batch
            where subject_key = $subject
            """,
            {
                "subject": search.subject_key,
                "found": str(sum(quantity for _, quantity in found)),
                "block": None if last is None else last.block,
                "position": None if last is None else last.position,
                "readings": readings,
                "batch": batch_id,
            },
        )
