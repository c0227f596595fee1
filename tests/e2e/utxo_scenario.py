"""The demo's chain of outputs: a tracked wallet for each form of address, and payments of every shape.

The module does not use the service.
"""

import random
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from tests.chain.utxo_node import BASE_UNITS, UtxoNode
from tests.chain.utxo_world import COINBASE_MATURITY, KINDS, Coin, UtxoWorld
from tests.chain.world import Token
from tests.oracles.utxo_chain import ChainOracle

_OTHERS = 20
# Distance of the first half's blocks, so that they fill weeks.
_BLOCK_SECONDS = 12 * 3600
_COINBASES = 20
_PER_OLD_BLOCK = 40
_DEPOSITS = 5
# The API shows a block with the median time of this many blocks.
_MEDIAN_BLOCKS = 11
# Smallest coin to pay with, base units.
_LEAST = 10_000
# A tracked wallet gets the reward of one block in five.
_MINED_BY_TRACKED = 5


class UtxoScenario:
    """Payments between tracked wallets and others, in two halves, the second one in blocks of the present.

    Args:
        node: a node of `new_node(transfers)`.
        transfers: random payments of both halves together.
    """

    tokens: Sequence[Token] = ()

    def __init__(self, node: UtxoNode, transfers: int) -> None:
        self.node = node
        self.half = transfers // 2
        self.sent = 0
        self.world = UtxoWorld(node)
        self.random = random.Random(1)
        self.tracked_wallets = tuple(self.world.address(kind) for kind in KINDS)
        self._others = [self.world.address(KINDS[number % len(KINDS)]) for number in range(_OTHERS)]

    @staticmethod
    def new_node(transfers: int) -> UtxoNode:
        """Return a node with a clock in the past, so that the first half ends just before now."""
        blocks = COINBASE_MATURITY + _COINBASES + _blocks_of(transfers // 2)
        start = int(time.time()) - 60 - blocks * _BLOCK_SECONDS
        return UtxoNode(start_time=start, step_seconds=_BLOCK_SECONDS)

    @property
    def started_at(self) -> datetime:
        """The start of the first whole day (UTC) after the first payments."""
        first = datetime.fromtimestamp(self.node.block_time(COINBASE_MATURITY + _COINBASES), UTC)
        return first.replace(hour=0, minute=0, second=0) + timedelta(days=1)

    def first_half(self) -> None:
        """Give every wallet coins, and make the first half of the payments."""
        self.world.mature(_COINBASES)
        wallets = [*self.tracked_wallets, *self._others]
        self.world.pay([(wallet, 2 * BASE_UNITS) for wallet in wallets for _ in range(_DEPOSITS)])
        self.world.mine()
        while self.sent < self.half:
            self._queue_payments(min(_PER_OLD_BLOCK, self.half - self.sent))
            self.world.mine(to=self._miner())
        self.node.step_seconds = 1
        self.world.mine(timestamp=int(time.time()) - _MEDIAN_BLOCKS)
        self.world.mine(_MEDIAN_BLOCKS - 1)

    def step(self, count: int) -> int:
        """Make one block of now with `count` random payments, and return its number."""
        self._queue_payments(count)
        return self.world.mine(to=self._miner(), timestamp=max(int(time.time()), self._newest_time() + 1))

    def pass_median(self) -> None:
        """Make blocks without payments, so that the median time of the newest one is at least now."""
        for _ in range(_MEDIAN_BLOCKS // 2 + 1):
            self.step(0)

    def _newest_time(self) -> int:
        return self.node.block_time(self.node.head())

    def _miner(self) -> str | None:
        """Return a tracked wallet for some blocks, else None."""
        return self.random.choice(self.tracked_wallets) if self.random.randrange(_MINED_BY_TRACKED) == 0 else None

    def _queue_payments(self, count: int) -> None:
        for _ in range(count):
            self._queue_payment()
        self.sent += count

    def _queue_payment(self) -> None:
        """Queue a payment of a random shape; at least one tracked wallet pays or receives."""
        wallet = self.random.choice(self.tracked_wallets)
        other = self.random.choice(self._others)
        first, second = self.random.sample([wallet, other], 2)
        amount = self.random.randint(1_000, BASE_UNITS // 100)
        shape = self.random.randrange(10)
        spare = [coin for one in (first, second) for coin in self._spare(one)[:1]]
        if shape < 6 or len(spare) < 2:
            # One sender; the remainder returns to it.
            self.world.pay({second: amount}, senders=[first])
        elif shape < 8:
            # Several senders and recipients.
            receivers = self.random.sample([*self.tracked_wallets, *self._others], 3)
            share = sum(coin.amount for coin in spare) // 4
            self.world.pay([(one, share) for one in receivers], inputs=spare)
        elif shape < 9:
            # To itself, by several inputs.
            coins = self.world.coins(wallet)[:2]
            self.world.pay([(wallet, sum(coin.amount for coin in coins) // 2)], inputs=coins)
        else:
            # The remainder goes to a new address, which belongs to no tracked wallet.
            self.world.pay({second: spare[0].amount // 2}, inputs=spare[:1], change=self.world.address())

    def _spare(self, wallet: str) -> list[Coin]:
        """Return coins that a wallet can do without, the smallest one first."""
        coins = sorted(self.world.coins(wallet), key=lambda coin: coin.amount)
        return [coin for coin in coins[:-1] if coin.amount > _LEAST]


class Replacement:
    """Two payments that spend the same output: a reorganisation replaces the block of the first one.

    Args:
        scenario: the chain.
        payer: spends its oldest output.
        receivers: of the first and the second payment.
    """

    _FEE = 1_000

    def __init__(self, scenario: UtxoScenario, payer: str, receivers: tuple[str, str]) -> None:
        self._world, self._scenario, self._receivers = scenario.world, scenario, receivers
        self._coin = max(self._world.coins(payer), key=lambda coin: coin.amount)

    def pay(self) -> tuple[str, int]:
        """Make the first payment in a block of now; return its id and the block."""
        txid = self._pay(self._receivers[0])
        return txid, self._scenario.step(0)

    def replace(self) -> tuple[str, int]:
        """Replace the block by two others with the second payment; return its id and the newest block."""
        made: list[str] = []
        head = self._world.reorganise(1, 2, lambda: made.append(self._pay(self._receivers[1])))
        return made[0], head

    def _pay(self, receiver: str) -> str:
        return self._world.pay({receiver: self._coin.amount // 2}, inputs=[self._coin], fee=self._FEE)


class UtxoChain:
    """The node's chain until now, for comparisons.

    Balances of past blocks are computed from the blocks' JSON. The newest ones are the node's own scan of its unspent
    outputs. A block's time is the median of 11 blocks, as nodes use it.
    """

    def __init__(self, node: UtxoNode, wallets: Sequence[str]) -> None:
        self.oracle = ChainOracle(node)
        self.scanned = self.oracle.scan(wallets)
        hashes = [[block_hash] for block_hash in self.oracle.hashes]
        self._times = [int(header["mediantime"]) for header in node.batch([("getblockheader", one) for one in hashes])]

    def block_time(self, block: int) -> int:
        """Return the median time of a block, Unix seconds."""
        return self._times[block]

    def moved(self, wallet: str) -> Iterator[tuple[int, str, int, int | None]]:
        """Yield block, id, moved base units (out: below 0) and fee of each transaction of a wallet.

        The amount leaves out a fee that the wallet alone paid. There is no fee in all other cases.
        """
        for one in self.oracle.transactions(wallet):
            fee = one.fee if {output.address for output in one.inputs} == {wallet} else None
            yield one.height, one.txid, one.net[wallet] + (fee or 0), fee

    def held(self, asset: str, wallet: str, block: int) -> int:
        """Return a wallet's balance at the end of a block, base units."""
        assert asset == "native"
        return self.scanned[wallet] if block == self.oracle.head else self.oracle.balance(wallet, block)


def _blocks_of(payments: int) -> int:
    return -(-payments // _PER_OLD_BLOCK)
