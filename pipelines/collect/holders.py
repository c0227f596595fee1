"""Holders of tokens whom no movement names: credited by a constructor or a migration without a word.

They are searched for where nobody can have held anything before what is covered, and something remains of the supply
when everybody has what is known of them. Asked for their balance are the token itself, its owner, who created it, and
the senders of the transactions that moved it, as stored. Who has one is a holder from then on, whose balance is
adjusted, as any balance that movements do not explain; what remains after that is not searched again until it is
another remainder.

Who is searched for is decided for each tenant by its own views; who is asked for is read once for all of them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress

import polars as pl

from pipelines.collect.readings import Pair, owed_to
from pipelines.collect.segments import Collector, record_others
from pipelines.extract.errors import ExtractError, StateUnavailable
from pipelines.extract.family import PAST_BALANCES, Header
from pipelines.load.holders import Search, Transaction, next_transactions, open_searches, record_search, unknown_holders
from pipelines.load.readings import insert_balance_observations
from pipelines.load.spending import read_budget
from pipelines.rows import Purpose

# Transactions and balances that are read for one remainder at most.
_MOST_READINGS = 10_000
# Transactions that one cycle goes through at most: live tracking does not wait for the rest.
_MOST_TRANSACTIONS = 1_000


def search_holders(collector: Collector, head: Header) -> int:
    """Go on with the searches that are open, as far as one cycle goes; return how many balances were read.

    A reading that fails is noted and made up for later; it stops nothing. It waits where the network's budget of
    requests is used up.
    """
    connection, node = collector.connection, collector.node
    searches = open_searches(connection, collector.network)
    if not searches or read_budget(connection, collector.network).waits_until is not None:
        return 0
    record_others(connection, node, Purpose.LIVE)
    try:
        return _search(collector, head, searches)
    except ExtractError as error:
        collector.note(error, f"search for holders: {error}")
        return 0
    finally:
        record_others(connection, node, Purpose.SEARCH)


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
        read = owed_to(frame, [sorted(owed[pair]) for pair in found])
        insert_balance_observations(collector.connection, collector.network, read, "Check", collector.batch_id)
    return found
