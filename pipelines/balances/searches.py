"""Search for holders of tokens that no movement names: a constructor or a migration credited them without an event.

A search begins if no balance can precede the covered range, and if the known balances do not add up to the supply. It
reads the balances of the token itself, its owner, its creator, and the senders of the stored transactions that moved
it. An address with a balance becomes a holder, and its balance is adjusted like any other that movements do not
explain. A remainder that is left over is not searched again until it changes.

Each tenant's views decide which tokens are searched. Each candidate address is read once for all tenants.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import duckdb
import polars as pl

from control.ranges import BlockRange
from pipelines.balances.readings import Pair, insert_balance_observations, with_tenants
from pipelines.chain.segments import Collector, record_others
from pipelines.extract.errors import ExtractError, StateUnavailable
from pipelines.extract.family import PAST_BALANCES, Header
from pipelines.raw.builds import has_relation
from pipelines.raw.database import named, transaction
from pipelines.raw.frames import registered
from pipelines.raw.usage import read_budget
from pipelines.rows import WorkClass

# Transactions and balances that are read for one remainder at most.
MOST_READINGS = 10_000
# Transactions that one cycle reads at most: live tracking does not wait for the rest.
MOST_TRANSACTIONS = 1_000


class Search(NamedTuple):
    """The search for holders of a tracked token, and its progress.

    Attributes:
        created: first block of the token, where its tenant knows it.
        block, position: of the last transaction read; -1 before the first.
        readings: number of transactions and balances read for the search.
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
    """A transaction that moved a token; `sender` is None where no stored row contains it."""

    block: int
    position: int
    hash: str
    sender: str | None


def search_holders(collector: Collector, head: Header) -> int:
    """Continue the open searches within the limits of a cycle; return the number of balances read.

    A failed reading is recorded and retried later; it stops nothing. The searches pause while the network's budget of
    requests is used up.
    """
    connection, node = collector.connection, collector.node
    searches = open_searches(connection, collector.network)
    if not searches or read_budget(connection, collector.network).waits_until is not None:
        return 0
    record_others(connection, node, WorkClass.LIVE)
    try:
        return _search(collector, head, searches)
    except ExtractError as error:
        collector.note(error, f"search for holders: {error}")
        return 0
    finally:
        record_others(connection, node, WorkClass.SEARCH)


def _search(collector: Collector, head: Header, searches: Sequence[Search]) -> int:
    pages = _pages(collector, searches)
    unsent = {one.hash for page in pages.values() for one in page if one.sender is None}
    senders = dict(zip(sorted(unsent), collector.node.senders(sorted(unsent)), strict=True))
    likely = {one.token: _likely_holders(collector, head, one) for one in pages if one.is_new}
    asked: dict[Search, frozenset[str]] = {}
    by_block: dict[int, dict[Pair, set[str]]] = defaultdict(lambda: defaultdict(set))
    for search, page in pages.items():
        candidates = {one.sender or senders[one.hash] for one in page} | set(likely.get(search.token, ()))
        asked[search] = unknown_holders(collector.connection, search, {address for address in candidates if address})
        for holder in asked[search]:
            by_block[_read_at(search, head)][search.token, holder].add(search.tenant_id)
    found = {block: _read(collector, head, block, pending) for block, pending in by_block.items()}
    for search, page in pages.items():
        quantities = found.get(_read_at(search, head), {})
        holders = [
            (holder, quantities[search.token, holder])
            for holder in sorted(asked[search])
            if (search.token, holder) in quantities
        ]
        readings = len(asked[search]) + sum(one.sender is None for one in page)
        is_over = len(page) < max(_most_transactions(search), 1)
        record_search(
            collector.connection,
            collector.network,
            search,
            holders,
            None if is_over else page[-1],
            readings,
            collector.batch_id,
        )
    return sum(len(pending) for pending in by_block.values())


def _most_transactions(search: Search) -> int:
    """Return the number of transactions to read next; the balance of each one's sender may have to be read too."""
    return max(min(MOST_TRANSACTIONS, (MOST_READINGS - search.readings) // 2), 0)


def _pages(collector: Collector, searches: Sequence[Search]) -> dict[Search, list[Transaction]]:
    """Return the transactions of each search in this cycle; searches share the cost of common transactions."""
    pages: dict[Search, list[Transaction]] = {}
    gone_through: set[str] = set()
    for search in searches:
        page = next_transactions(collector.connection, collector.network, search, _most_transactions(search))
        gone_through |= {one.hash for one in page}
        if pages and len(gone_through) > MOST_TRANSACTIONS:
            break
        pages[search] = page
    return pages


def _likely_holders(collector: Collector, head: Header, search: Search) -> list[str]:
    node, created = collector.node, search.created
    if created is None and PAST_BALANCES in collector.capabilities:
        with suppress(StateUnavailable):
            created = node.creation(search.token, head.number)
    return node.likely_holders(search.token, created, head.number)


def _read_at(search: Search, head: Header) -> int:
    return min(search.covered.last, head.number)


def _read(collector: Collector, head: Header, block: int, pending: Mapping[Pair, set[str]]) -> dict[Pair, int]:
    """Read balances at the end of a block and store those above 0."""
    node = collector.node
    if not node.keeps_state(block, head):
        return {}
    pairs = sorted(pending)
    try:
        frame = node.balances(pairs, block, collector.stored_hashes([block])[block])
    except StateUnavailable:
        return {}
    frame = frame.filter(pl.col("quantity_raw") != "0")
    found = {(token, holder): int(quantity) for token, holder, *_, quantity in frame.iter_rows()}
    if found:
        read = with_tenants(frame, [sorted(pending[pair]) for pair in found])
        insert_balance_observations(collector.connection, collector.network, read, "Check", collector.batch_id)
    return found


def begin_searches(connection: duckdb.DuckDBPyConnection, network: str, batch_id: int) -> None:
    """Begin searches for remainders of supplies in the newest build that were not searched yet.

    Call it before recording the cycle's readings. It does nothing if no build followed the readings of the previous
    cycle.
    """
    if not has_relation(connection, "requests__searches"):
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
            """
            create or replace temp table remainders as
            select subject_key, remainder_raw from requests.requests__searches where network = $network
            """,
            parameters,
        )
        # A changed remainder is searched again after its current search is finished.
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
    """Return the unfinished searches, the oldest first."""
    rows = connection.execute(*named("open_searches", {"network": network})).fetchall()
    return [
        Search(key, tenant, token, created, BlockRange(first, last), *reached)
        for key, tenant, token, created, first, last, *reached in rows
    ]


def next_transactions(
    connection: duckdb.DuckDBPyConnection, network: str, search: Search, most: int
) -> list[Transaction]:
    """Return the transactions that a search must read next, in their order."""
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
    """Return those of the addresses without a balance of the token that the search's tenant knows."""
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
    """Record the holders found with their balances, and the progress of the search.

    Args:
        last: the last transaction read; None: the search is finished.
        readings: number of transactions and balances read for this step.
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
