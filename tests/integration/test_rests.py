"""Confirming readings at each block of random chains: plain Python compared with the marts and the API's queries.

Tokens move with and without events, and are read on time and late. They open with a reading, with zero or with a
derived balance. Wallets hold them, and native value that moves without a transaction.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from api.engine.query_texts import load_queries
from tests.integration.dbt_runner import LATER_CYCLE, Stores, build_over_nothing, open_marts, run_dbt
from tests.integration.transformed import compare_with_full_refresh, publish
from tests.oracles.balances import Oracle
from tests.worlds.ledger import (
    NATIVE,
    ZERO,
    Coverage,
    Reading,
    Subject,
    Supply,
    Transaction,
    Transfer,
    World,
    address,
)

FIRST, HEAD, LATER_HEAD = 6, 26, 30
SOMEBODY = address(0xFFFF)


class Life(NamedTuple):
    """Changes of a balance by block, with events (`moves`) and without, and the blocks read on time and late."""

    moves: Sequence[tuple[int, int]] = ()
    silent: Sequence[tuple[int, int]] = ()
    read: Sequence[int] = ()
    read_later: Sequence[int] = ()


class Story(NamedTuple):
    """A token or native value with one life per holder; `is_created`: the token was created within the view."""

    lives: Sequence[Life]
    is_native: bool = False
    is_created: bool = False
    is_token_tracked: bool = True
    is_wallet_tracked: bool = False


KNOWN = [
    # Readings before, after and between movements; one balance is read twice within one rest.
    Story([Life([(8, 5), (12, 3), (20, 1)], read=[5, 10, 18, 25], read_later=[9, 19])]),
    Story([Life([(8, 5)], read=[20], read_later=[15])], is_created=True, is_wallet_tracked=True),
    # The opening is derived from later readings, one and two, and is not below zero.
    Story([Life([(8, 5)], read=[12]), Life([(9, 5)], read=[12, 24])], is_wallet_tracked=True),
    Story([Life([(8, 5)], silent=[(10, -50)], read=[12], read_later=[14])]),
    # A silent mint: a later reading shows it, and the reading before locates it.
    Story([Life([(8, 5)], [(16, 7)], read=[5, 12, 22])], is_wallet_tracked=True),
    Story([Life([(8, 5)], [(16, 7)], read=[5, 10, 20], read_later=[15, 16])], is_native=True),
    Story([Life([(8, 5)], [(16, 7), (18, -3)], read=[5, 20], read_later=[13])], is_native=True),
    # No balance is read twice.
    Story([Life([(8, 5)], read=[20])]),
    Story([Life([(8, 5)], read=[10, 14])], is_token_tracked=False, is_wallet_tracked=True),
]

_blocks = st.integers(1, LATER_HEAD)
_amounts = st.integers(-20, 20).filter(bool)
_changes = st.dictionaries(_blocks, _amounts, max_size=5).map(lambda found: sorted(found.items()))
_silent = st.one_of(
    st.just([]), st.dictionaries(_blocks, _amounts, max_size=2).map(lambda found: sorted(found.items()))
)
_readings = st.lists(st.integers(FIRST - 1, LATER_HEAD), unique=True, max_size=5)
_lives = st.builds(Life, _changes, _silent, _readings, _readings)
_quiet_lives = st.builds(Life, _changes, st.just([]), _readings, _readings)
_stories = st.one_of(
    st.builds(
        Story,
        lives=st.one_of(st.lists(_quiet_lives, min_size=1, max_size=3), st.lists(_lives, min_size=1, max_size=3)),
        is_created=st.booleans(),
        is_token_tracked=st.booleans(),
        is_wallet_tracked=st.booleans(),
    ),
    st.builds(Story, lives=st.lists(_lives, min_size=1, max_size=1), is_native=st.just(True)),
)


class Chain:
    """A world with all stories at once, collected in two cycles."""

    def __init__(self, stories: Sequence[Story]) -> None:
        self.world = World(0)
        self._later: list[tuple[str, str, int, int]] = []
        self._later_supplies: list[tuple[str, int, int]] = []
        self._facts: dict[int, list[tuple[str, str, int]]] = defaultdict(list)
        self._truth: dict[tuple[str, str], list[int]] = {}
        self._keys = 0
        self.world.begin()
        self._mine(HEAD)
        for number, story in enumerate(stories):
            token = NATIVE if story.is_native else address(0xA000 + number)
            wallets = [address(0xB000 + 16 * number + place) for place in range(len(story.lives))]
            if story.is_created:
                self.world.create(token, FIRST, "ten_a")
            if story.is_token_tracked and not story.is_native:
                self._track("token", token)
            for wallet, life in zip(wallets, story.lives, strict=True):
                if story.is_native or story.is_wallet_tracked:
                    self._track("wallet", wallet)
                self._live(token, wallet, life, 0 if story.is_created else 40)
            if story.is_token_tracked and not story.is_native:
                self._supply(token, wallets, story.lives[0])
        self._tell(FIRST, HEAD)

    def go_on(self) -> None:
        """Add the last blocks, and the late readings."""
        self.world.transformed = self.world.batch
        self.world.begin()
        self._mine(LATER_HEAD)
        self.world.coverage = [row._replace(last=LATER_HEAD) for row in self.world.coverage]
        self._tell(HEAD + 1, LATER_HEAD)
        for token, wallet, block, quantity in self._later:
            self._read(token, wallet, block, quantity)
        for token, block, quantity in self._later_supplies:
            self._read_supply(token, block, quantity)

    def _mine(self, head: int) -> None:
        self.world.hashes |= {block: f"0x{block:064x}" for block in range(head + 1)}
        self.world.head = self.world.known_head = head

    def _track(self, kind: str, where: str) -> None:
        self._keys += 1
        self.world.add(Subject(self._keys, kind, "ten_a", "led_a", where))
        self.world.track(self._keys, self._keys, FIRST)
        kinds = ["wallet", "native"] if kind == "wallet" else ["token"]
        self.world.coverage += [Coverage(one, where, FIRST, HEAD) for one in kinds]

    def _live(self, token: str, wallet: str, life: Life, opening: int) -> None:
        """Compute the balance at every block; skip changes below zero or before the token's creation."""
        moves, silent, balance, truth = dict(life.moves), dict(life.silent), opening, []
        for block in range(LATER_HEAD + 1):
            for changes, is_told in ((moves, True), (silent, False)):
                change = changes.get(block, 0)
                if balance + change >= 0 and (opening or block >= FIRST):
                    balance += change
                    if is_told and change and block >= FIRST:
                        self._facts[block].append((token, wallet, change))
            truth.append(balance)
        self._truth[token, wallet] = truth
        self._later += [(token, wallet, block, truth[block]) for block in life.read_later]
        for block in set(life.read) - set(life.read_later):
            if block <= HEAD:
                self._read(token, wallet, block, truth[block])
            else:
                self._later.append((token, wallet, block, truth[block]))

    def _read(self, token: str, wallet: str, block: int, quantity: int) -> None:
        batch = self.world.batch
        self.world.readings.append(Reading(token, wallet, block, quantity, "Check", batch, {"ten_a": batch}))

    def _supply(self, token: str, wallets: Sequence[str], life: Life) -> None:
        """Read the supply, the sum of the wallets' balances, in the blocks that `life` reads."""
        truth = [sum(held) for held in zip(*(self._truth[token, wallet] for wallet in wallets), strict=True)]
        for block in {*life.read, *life.read_later}:
            if block in life.read_later or block > HEAD:
                self._later_supplies.append((token, block, truth[block]))
            else:
                self._read_supply(token, block, truth[block])

    def _read_supply(self, token: str, block: int, quantity: int) -> None:
        batch = self.world.batch
        self.world.supplies.append(Supply(token, block, quantity, batch, {"ten_a": batch}))

    def _tell(self, first: int, last: int) -> None:
        for block in range(first, last + 1):
            for position, (token, wallet, amount) in enumerate(self._facts[block]):
                parties = (SOMEBODY, wallet) if amount > 0 else (wallet, SOMEBODY)
                if token == NATIVE:
                    row = Transaction(block, position, *parties, None, abs(amount), 0, True, self.world.batch)
                    self.world.transactions.append(row)
                else:
                    sender, recipient = (party if party == wallet else ZERO for party in parties)
                    self.world.transfers.append(
                        Transfer(block, position, position, token, sender, recipient, abs(amount), self.world.batch)
                    )


def compare(chain: Chain, stores: Stores, head: int) -> set[tuple[str, str | None, bool | None]]:
    """Compare all subjects at every block; return the observed (status, behaviour, confirmed later) combinations."""
    queries, world = load_queries(), chain.world
    found: set[tuple[str, str | None, bool | None]] = set()
    oracle = Oracle(world)
    points = {key: oracle.points(subject) for key, subject in world.subjects.items()}
    behaviours = oracle.behaviours(points)
    with open_marts(stores) as connection:
        for key, subject in world.subjects.items():
            is_token = subject.kind == "token"
            held, query = ("holder_address", "holders_as_of") if is_token else ("token_address", "balances_as_of")
            is_known = is_token or any((NATIVE, subject.address) in pairs for pairs in points[key].values())
            unread = {} if is_known else {NATIVE: (None, "Unchecked", None)}
            for block in range(FIRST, head + 1):
                shown = oracle.shown(subject, points[key], behaviours, block)
                expected = {pair[1] if is_token else pair[0]: said for pair, said in shown.items() if said.balance}
                asked = {"subject_key": key, "tenant_id": "ten_a", "first_block": FIRST, "block_number": block}
                rows = connection.execute(
                    f"select {held}, quantity_raw::varchar, reconciliation, checked_block_number"
                    f" from ({queries[query]})",
                    asked,
                ).fetchall()
                assert (subject, block, _by_name(rows)) == (subject, block, expected | unread)
                for name, said in expected.items():
                    behaviour = behaviours[key, subject.address if is_token else name]
                    is_later = None if said.checked_block is None else said.checked_block > block
                    found.add((said.reconciliation, behaviour, is_later))
            if is_token:
                supplies = {block: oracle.supply_at(subject, behaviours, block) for block in range(FIRST, head + 1)}
                _expect_supplies(connection, key, supplies)
                found |= {(status, behaviours[key, subject.address], None) for _, status in supplies.values()}
            mart = "token_holders" if is_token else "wallet_balances"
            rows = connection.execute(
                f"select {held}, quantity_raw::varchar, reconciliation, checked_block_number from marts.{mart}"
                f" where subject_key = {key}"
            ).fetchall()
            # `expected` is that of the newest block, the last one of the loop.
            assert (subject, _by_name(rows)) == (subject, expected | unread)
    return found


def _expect_supplies(
    connection: duckdb.DuckDBPyConnection, key: int, expected: dict[int, tuple[int | None, str]]
) -> None:
    """Compare a token's supply at all blocks in the mart, and at some blocks in the API's query."""
    rows = connection.execute(
        "select block_number, total_supply_raw::varchar, supply_status, supply_status_after"
        f" from marts.token_supplies where subject_key = {key} order by block_number"
    ).fetchall()
    query = f"select total_supply_raw::varchar, supply_status from ({load_queries()['supply_as_of']})"
    for block, said in expected.items():
        number, raw, at, after = next((row for row in reversed(rows) if row[0] <= block), (block, None, "Unknown", ""))
        assert (key, block, None if raw is None else int(raw), at if number == block else after) == (key, block, *said)
        if block % 5 == 0:
            asked = {"subject_key": key, "tenant_id": "ten_a", "first_block": FIRST, "block_number": block}
            raw, status = connection.execute(query, asked).fetchone() or (None, "Unknown")
            assert (key, block, None if raw is None else int(raw), status) == (key, block, *said)


def _by_name(rows: list[Any]) -> dict[str, tuple[int | None, str, int | None]]:
    return {name: (quantity and int(quantity), check, checked) for name, quantity, check, checked in rows}


def check_chain(stores: Stores, stories: Sequence[Story], refreshed: Path | None = None) -> None:
    """Build in two cycles; compare after each."""
    chain = Chain([*KNOWN, *stories])
    chain.world.write(stores.warehouse)
    run_dbt(stores, *LATER_CYCLE)
    compare(chain, stores, HEAD)
    chain.go_on()
    chain.world.write(stores.warehouse)
    run_dbt(stores, *LATER_CYCLE)
    found = compare(chain, stores, LATER_HEAD)
    # The stories covered all of these combinations.
    assert {
        ("Reconciled", "Standard", False),
        ("Reconciled", "Standard", True),
        ("Adjusted", "Standard", False),
        ("Unchecked", "Standard", False),
        ("Unchecked", "Standard", None),
        ("Unchecked", "NonConforming", False),
        ("Adjusted", "NonConforming", False),
        ("Unchecked", None, None),
        ("Observed", "Standard", None),
        ("Unconfirmed", "Standard", None),
        ("Observed", "NonConforming", None),
        ("Unconfirmed", "NonConforming", None),
        ("Unknown", None, None),
    } <= found
    if refreshed is not None:
        compare_with_full_refresh(stores, refreshed)


def _examples(count: int) -> settings:
    return settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@pytest.mark.ci
@_examples(1)
@given(stories=st.lists(_stories, min_size=15, max_size=20))
def test_a_reading_confirms_its_rest(tmp_path_factory: pytest.TempPathFactory, stories: list[Story]) -> None:
    # Skip hypothesis' first example, which repeats one story.
    assume(len(set(map(repr, stories))) > 10)
    folder = tmp_path_factory.mktemp("rests")
    check_chain(build_over_nothing(folder / "stores"), stories, folder / "refreshed")


@pytest.mark.release
@_examples(12)
@given(stories=st.lists(_stories, min_size=20, max_size=40))
def test_a_reading_confirms_its_rest_on_more_chains(
    tmp_path_factory: pytest.TempPathFactory, stories: list[Story]
) -> None:
    folder = tmp_path_factory.mktemp("rests")
    check_chain(build_over_nothing(folder / "stores"), stories, folder / "refreshed")


def test_an_agreeing_reading_is_written_without_a_recomputed_range(tmp_path: Path) -> None:
    stores = build_over_nothing(tmp_path / "stores")
    # One of the late readings is in a block with a movement.
    quiet = Life([(8, 5), (12, 3), (20, 1)], read=[5, 25], read_later=[10, 12, 15])
    # Late readings show and locate a silent mint.
    loud = Life([(8, 5), (20, 1)], [(14, 7)], read=[5, 25], read_later=[10, 16])
    chain = Chain([Story([quiet]), Story([loud])])
    chain.world.write(stores.warehouse)
    run_dbt(stores, *LATER_CYCLE)
    publish(stores, chain.world.batch)
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stores.marts}' as published; use published")
        # Rewritten rows lose this value.
        connection.execute("update marts.balance_changes set token_symbol = 'KEPT'")
    chain.go_on()
    chain.world.write(stores.warehouse)
    run_dbt(stores, *LATER_CYCLE)
    with open_marts(stores) as connection:
        rows = connection.execute(
            "select subject_key, list(block_number order by block_number) filter (where token_symbol = 'KEPT'),"
            " list(block_number order by block_number) filter (where token_symbol is null)"
            " from marts.balance_changes group by subject_key order by subject_key"
        ).fetchall()
        named = connection.execute(
            "select subject_key, from_block from marts.recomputed_ranges where reason = 'Reading'"
        ).fetchall()
    assert rows == [(1, [5, 8], [10, 12, 15, 20, 25]), (2, [5, 8], [10, 16, 20, 25])]
    assert named == [(2, 10)]
    compare(chain, stores, LATER_HEAD)
