"""The demo's chain: five tokens of different make, a few hundred wallets, and traffic before and during tracking.

It knows the chain alone, not the service.
"""

import time

from tests.chain.node import AnvilNode
from tests.chain.world import Token, World, call_data

WALLETS = 300
# Wallets that hold tokens and never move once tracking has begun.
SLEEPING = 40
_BLOCK_SECONDS = 60
_GAS_PRICE = 10**9
# Blocks made before the random traffic: contracts and first balances.
_SET_UP_BLOCKS = 11
_PER_OLD_BLOCK = 40


class Scenario:
    """A world that is filled in two halves, the second in blocks of the present.

    Args:
        node: a node whose genesis is `genesis_time(transfers)`.
        transfers: random token transactions of both halves together.
    """

    def __init__(self, node: AnvilNode, transfers: int) -> None:
        self.half = transfers // 2
        self.sent = 0
        self.world = World(node, wallet_count=WALLETS, block_seconds=_BLOCK_SECONDS, gas_price=_GAS_PRICE)
        self.awake = self.world.wallets[:-SLEEPING]
        self.world.place_multicall()
        collector = self.world.wallets[3]
        self.tokens = [
            self.world.deploy_token("GOLD", 18, name="Demo Gold"),
            self.world.deploy_token("CASH", 6, name="Demo Cash"),
            self.world.deploy_bytes32_token("RELIC", 18),
            self.world.deploy_token("TICKET", 0, name="Demo Ticket"),
            self.world.deploy_token("TAX", 18, name="Demo Tax", fee_basis_points=150, fee_collector=collector),
        ]
        self._splitter = self.world.deploy("Splitter")

    @staticmethod
    def genesis_time(transfers: int) -> int:
        """Return the genesis time, Unix seconds, with which the first half ends a moment before now."""
        blocks = _SET_UP_BLOCKS + -(-(transfers // 2) // _PER_OLD_BLOCK)
        return int(time.time()) - blocks * _BLOCK_SECONDS - 30

    @property
    def tracked_wallets(self) -> tuple[str, ...]:
        """Three busy wallets, the collector of the fee, and one that never moves again."""
        return (*self.world.wallets[:4], self.world.wallets[-1])

    def first_half(self) -> None:
        """Give every wallet its first tokens, the early ones more, and make the first half of the transfers."""
        for token in self.tokens:
            supply = 10 ** (9 + (token.decimals or 0))
            for index, wallet in enumerate(self.world.wallets):
                self.world.transfer(token, self.world.deployer, wallet, supply // (8 * (index + 4)))
            self.world.mine()
        self.world.transfer_many(self.half, self.tokens, per_block=_PER_OLD_BLOCK)
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
        made = self.world.transfer_many(
            count, self.tokens, per_block=count, wallets=self.awake, timestamp=int(time.time())
        )
        self.sent += count
        return made.last

    def token_named(self, symbol: str) -> Token:
        """Return one of the five tokens by its symbol."""
        return next(token for token in self.tokens if token.symbol == symbol)
