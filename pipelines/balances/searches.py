"""Holders of tokens whom no movement names: credited by a constructor or a migration without a word.

They are searched for where nobody can have held anything before what is covered, and something remains of the supply
when everybody has what is known of them. Asked for their balance are the token itself, its owner, who created it, and
the senders of the transactions that moved it, as stored. Who has one is a holder from then on, whose balance is
adjusted, as any balance that movements do not explain; what remains after that is not searched again until it is
another remainder.

Who is searched for is decided for each tenant by its own views; who is asked for is read once for all of them.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import duckdb
import polars as pl

from pipelines.balances.readings import Pair, insert_balance_observations, with_tenants
from pipelines.chain.segments import Collector, record_others
from pipelines.extract.errors import ExtractError, StateUnavailable
from pipelines.extract.family import PAST_BALANCES, Header
from pipelines.ranges import BlockRange
from pipelines.raw.builds import has_relation
from pipelines.raw.database import named, transaction
from pipelines.raw.frames import registered
from pipelines.raw.usage import read_budget
from pipelines.rows import WorkClass

# Transactions and balances that are read for one remainder at most.
_MOST_READINGS = 10_000
# Transactions that one cycle goes through at most: live tracking does not wait for the rest.
_MOST_TRANSACTIONS = 1_000


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


def search_holders(collector: Collector, head: Header) -> int:
    """Go on with the searches that are open, as far as one cycle goes; return how many balances were read.

    A reading that fails is noted and made up for later; it stops nothing. It waits where the network's budget of
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
        named = {one.sender or senders[one.hash] for one in page} | set(likely.get(search.token, ()))
        asked[search] = unknown_holders(collector.connection, search, {address for address in named if address})
        for holder in asked[search]:
            by_block[_read_at(search, head)][search.token, holder].add(search.tenant_id)
    found = {block: _read(collector, head, block, owed) for block, owed in by_block.items()}
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
    return sum(len(owed) for owed in by_block.values())


def _most_transactions(search: Search) -> int:
    """How many are gone through next: the balance of each one's sender may have to be read too."""
    return max(min(_MOST_TRANSACTIONS, (_MOST_READINGS - search.readings) // 2), 0)


def _pages(collector: Collector, searches: Sequence[Search]) -> dict[Search, list[Transaction]]:
    """What each search goes through in this cycle; those that go through the same cost no more than one."""
    pages: dict[Search, list[Transaction]] = {}
    gone_through: set[str] = set()
    for search in searches:
        page = next_transactions(collector.connection, collector.network, search, _most_transactions(search))
        gone_through |= {one.hash for one in page}
        if pages and len(gone_through) > _MOST_TRANSACTIONS:
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


def _read(collector: Collector, head: Header, block: int, owed: Mapping[Pair, set[str]]) -> dict[Pair, int]:
    """Read balances at the end of a block and store those that are not nothing."""
    node = collector.node
    if not node.keeps_state(block, head):
        return {}
    pairs = sorted(owed)
    try:
        frame = node.balances(pairs, block, collector.stored_hashes([block])[block])
    except StateUnavailable:
        return {}
    frame = frame.filter(pl.col("quantity_raw") != "0")
    found = {(token, holder): int(quantity) for token, holder, *_, quantity in frame.iter_rows()}
    if found:
        read = with_tenants(frame, [sorted(owed[pair]) for pair in found])
        insert_balance_observations(collector.connection, collector.network, read, "Check", collector.batch_id)
    return found


def begin_searches(connection: duckdb.DuckDBPyConnection, network: str, batch_id: int) -> None:
    """Begin the searches of what remains of supplies by the newest build, and was not searched yet.

    To be called before the cycle's readings are recorded as made: nothing is compared where no build came after those
    of the cycle before.
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
