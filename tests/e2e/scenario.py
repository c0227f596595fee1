"""The demo's chain: five tokens of different kinds, two price feeds, a few hundred wallets, and their traffic.

The module does not use the service.
"""

import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TypeVar

from tests.chain.node import AnvilNode
from tests.chain.world import Token, World, call_data, holder_at

Made = TypeVar("Made")

WALLETS = 300
# Wallets that hold tokens and never move once tracking has begun.
SLEEPING = 40
FEED_DECIMALS = 8
# Distance of the first half's newest blocks, so that they fill days.
_BLOCK_SECONDS = 4 * 3600
_GAS_PRICE = 10**9
# The time before these blocks: 13 months with a few transfers and without prices.
_QUIET_DAYS = 400
_DAYS_BETWEEN_MOVES = 10
_MOVES = 12
_DAY_SECONDS = 24 * 3600
# Depth at which the node's blocks are final.
_BLOCKS_UNTIL_FINAL = 64
# Blocks that only have new prices, before the random traffic.
_PRICED_BLOCKS = 13
# Silent growth of TICKET's supply: amount by the sent fraction of the second half. An unseen wallet gets the tokens.
_SILENT_MINTS = {0.2: 700, 0.4: 1_100}
# First prices in US dollars, in the feeds' units.
_FIRST_ANSWERS = {"GOLD": 2_43100000, "ETH": 3_127_55000000}
_PER_OLD_BLOCK = 40


class Scenario:
    """A world that is filled in two halves, the second one in blocks of the present.

    Args:
        node: a node with the genesis time `genesis_time(transfers)`.
        transfers: random token transactions of both halves together.
    """

    def __init__(self, node: AnvilNode, transfers: int) -> None:
        self.half = transfers // 2
        self.sent = 0
        self.world = World(node, wallet_count=WALLETS, block_seconds=_BLOCK_SECONDS, gas_price=_GAS_PRICE)
        self.awake = self.world.wallets[:-SLEEPING]
        self.world.place_multicall()
        self.feeds = {symbol: self.world.deploy("Feed", f"{symbol} / USD", FEED_DECIMALS) for symbol in _FIRST_ANSWERS}
        self.rounds: dict[str, list[tuple[int, int]]] = {symbol: [] for symbol in self.feeds}
        """Answers of each feed, oldest first: start in Unix seconds, and price in the feed's units."""
        collector = self.world.wallets[3]
        makers: list[Callable[[], Token]] = [
            lambda: self.world.deploy_token("GOLD", 18, name="Demo Gold"),
            lambda: self.world.deploy_token("CASH", 6, name="Demo Cash"),
            lambda: self.world.deploy_bytes32_token("RELIC", 18),
            lambda: self.world.deploy_token("TICKET", 0, name="Demo Ticket"),
            lambda: self.world.deploy_token("TAX", 18, name="Demo Tax", fee_basis_points=150, fee_collector=collector),
        ]
        self.tokens = [make() for make in makers]
        self._splitter = self.world.deploy("Splitter")
        self._busy_from = node.block_time(0) + _QUIET_DAYS * _DAY_SECONDS

    @staticmethod
    def genesis_time(transfers: int) -> int:
        """Return the genesis time, Unix seconds, with which the first half ends a moment before now."""
        blocks = _PRICED_BLOCKS + -(-(transfers // 2) // _PER_OLD_BLOCK)
        seconds = _QUIET_DAYS * _DAY_SECONDS + _BLOCKS_UNTIL_FINAL + blocks * _BLOCK_SECONDS
        return int(time.time()) - seconds - 30

    @property
    def started_at(self) -> datetime:
        """The start of the UTC day from which on there are prices."""
        first = datetime.fromtimestamp(self._busy_from, UTC)
        return first.replace(hour=0, minute=0, second=0)

    @property
    def month_ends(self) -> list[date]:
        """The last days of the twelve months before that."""
        months = self.started_at.year * 12 + self.started_at.month - 1
        firsts = [date(number // 12, number % 12 + 1, 1) for number in range(months - 11, months + 1)]
        return [first - timedelta(days=1) for first in firsts]

    @property
    def tracked_wallets(self) -> tuple[str, ...]:
        """Three busy wallets, the collector of the fee, and one that never moves again."""
        return (*self.world.wallets[:4], self.world.wallets[-1])

    def first_half(self) -> None:
        """Give every wallet its first tokens, the early ones more, and make the first half of the transfers.

        The movements of the quiet year come in addition.
        """
        for token in self.tokens:
            supply = 10 ** (9 + (token.decimals or 0))
            for index, wallet in enumerate(self.world.wallets):
                self.world.transfer(token, self.world.deployer, wallet, supply // (8 * (index + 4)))
            self.world.mine()
        begun, end = self.world.node.block_time(self.world.node.head()), self._busy_from - _DAY_SECONDS
        for moment in range(begun, end, _DAYS_BETWEEN_MOVES * _DAY_SECONDS):
            self.world.transfer_many(_MOVES, self.tokens, per_block=_MOVES, timestamp=moment)
        for number in range(_BLOCKS_UNTIL_FINAL + 1):
            self.world.mine(self._busy_from + number)
        for _ in range(_PRICED_BLOCKS):
            self._quoted(self.world.mine)
        for start in range(0, self.half, _PER_OLD_BLOCK):
            count = min(_PER_OLD_BLOCK, self.half - start)
            self._quoted(partial(self.world.transfer_many, count, self.tokens, per_block=_PER_OLD_BLOCK))
        self.sent += self.half

    def step(self, count: int) -> int:
        """Make one block of now: `count` random token transactions, and native value from and to tracked wallets.

        Returns:
            The block's number.
        """
        payer, payee, *_ = self.world.random.sample(self.tracked_wallets[:4], 2)
        other = self.world.random.choice(self.awake)
        coins = self.world.random.randint(1, 10**18)
        self.world.submit(payer, other, value=coins)
        self.world.submit(other, payee, value=coins // 3)
        if self.world.random.random() < 0.2:
            split = call_data("Splitter", "split", [payee, other])
            self.world.submit(other, self._splitter, split, value=coins // 5)
        now = max(int(time.time()), self.world.node.block_time(self.world.node.head()) + 1)
        self._quote(now)
        self._mint_silently(count)
        made = self.world.transfer_many(count, self.tokens, per_block=count, wallets=self.awake, timestamp=now)
        self.sent += count
        return made.last

    def _mint_silently(self, count: int) -> None:
        """Queue a silent change of the supply if one is due within the next `count` transactions."""
        for part, amount in _SILENT_MINTS.items():
            due = self.half + int(part * self.half)
            if self.sent <= due < self.sent + count:
                ticket = self.token_named("TICKET")
                mint = call_data(ticket.contract, "mint_silently", holder_at(2**254), amount, True)
                self.world.submit(self.world.deployer, ticket.address, mint)

    def token_named(self, symbol: str) -> Token:
        """Return one of the five tokens by its symbol."""
        return next(token for token in self.tokens if token.symbol == symbol)

    def _quoted(self, make: Callable[[], Made]) -> Made:
        """Do what makes the next block of the first half, with new prices in it."""
        self._quote(self.world.node.block_time(self.world.node.head()) + _BLOCK_SECONDS)
        return make()

    def _quote(self, updated_at: int) -> None:
        """Send a new answer of each feed, up to 3 % from the last one, for the next block with this time."""
        for symbol, address in self.feeds.items():
            last = self.rounds[symbol][-1][1] if self.rounds[symbol] else _FIRST_ANSWERS[symbol]
            answer = last + last * self.world.random.randint(-300, 300) // 10_000
            self.world.submit(self.world.deployer, address, call_data("Feed", "answer", answer, updated_at))
            self.rounds[symbol].append((updated_at, answer))
