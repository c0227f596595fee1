"""A market for the reports: a token with some hundred holders, and a treasury with some hundred activities.

Plain Python computes it day by day from 2026-02-01 to 2026-11-20, in two covered ranges with a gap, as the pipeline
would see it. Symbols contain HTML, since anyone may deploy a contract with such a symbol. `published` has its marts.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from tests.api.world import text_of, time_of

SPAM_SYMBOL = "<img src=x onerror=\"document.title='pwned'\">"

BLOCKS_A_DAY = 7_200
DAYS = 292
_HOLDERS = 430
_TOKEN_MOVES = 900
_OTHER_MOVES = 420

TREASURY = "0x7e" + "a5" * 19
DESK = "0xde5c" + "0f" * 18
LUMEN, USDC, SPAM = "0x10" + "3e" * 19, "0xc0" + "1d" * 19, "0x5b" + "a7" * 19
NATIVE = "native"


class Asset(NamedTuple):
    """An asset of the treasury; `pair_key` is None if it has no price."""

    symbol: str
    decimals: int
    pair_key: int | None


ASSETS = {
    LUMEN: Asset("LMN", 18, 20),
    USDC: Asset("USDC", 6, 21),
    NATIVE: Asset("ETH", 18, 22),
    SPAM: Asset(SPAM_SYMBOL, 0, None),
}
SUPPLY = 10**8 * 10**18


def block_of(day: int, offset: int = 0) -> int:
    """Return the first block of a day of the market, or a later one."""
    return 100 + BLOCKS_A_DAY * day + offset


NEWEST = block_of(DAYS, 5_000)
RANGES = ((100, block_of(120, 3_000)), (block_of(124, 3_600), NEWEST))
UNPRICED_DAYS = range(60, 63)


@dataclass(frozen=True)
class Move:
    """One transfer; in a transfer to oneself `sender` equals `recipient`, and a fee has no recipient."""

    block: int
    asset: str
    sender: str
    recipient: str | None
    amount: int


class Market:
    """The movements of the market, with prices and balances."""

    def __init__(self) -> None:
        self._random = random.Random(20_260_201)
        self.holders = [TREASURY, DESK, *(f"0x{self._random.getrandbits(160):040x}" for _ in range(_HOLDERS - 2))]
        self.opening = self._opening()
        self.moves = sorted(self._moves(), key=lambda move: move.block)
        self.prices = {asset: self._prices(asset) for asset, known in ASSETS.items() if known.pair_key}

    def price(self, asset: str, moment: datetime) -> str | None:
        """Return the current price at a moment."""
        return self.prices[asset][(moment - time_of(100)) // timedelta(days=1)] if asset in self.prices else None

    def seen(self) -> Iterator[tuple[tuple[int, int], list[Move]]]:
        """Yield each covered range with its movements."""
        for first, last in RANGES:
            yield (first, last), [move for move in self.moves if first <= move.block <= last]

    def balances_before(self, block: int) -> dict[tuple[str, str], int]:
        """Return the balances of assets and holders at the end of the previous block."""
        balances = defaultdict(int, self.opening)
        for move in self.moves:
            if move.block < block:
                balances[move.asset, move.sender] -= move.amount
                if move.recipient is not None:
                    balances[move.asset, move.recipient] += move.amount
        return balances

    def _opening(self) -> dict[tuple[str, str], int]:
        shares = {holder: 14_000_000 // (place + 1) for place, holder in enumerate(self.holders)}
        held = {(LUMEN, holder): share * 10**18 + place for place, (holder, share) in enumerate(shares.items())}
        for holder in self.holders[-120:]:
            held[LUMEN, holder] = 0
        own = {(USDC, TREASURY): 50_000_000_000, (NATIVE, TREASURY): 300 * 10**18, (SPAM, TREASURY): 2**200}
        return held | own

    def _moves(self) -> Iterator[Move]:
        blocks = self._random.sample(range(100, NEWEST), _TOKEN_MOVES + _OTHER_MOVES)
        newcomers = self.holders[-120:]
        for place, block in enumerate(sorted(blocks[:_TOKEN_MOVES])):
            # The largest holders, which never run out, pay each newcomer once, one after the other.
            if place % 6 == 0 and place // 6 < len(newcomers):
                yield Move(block, LUMEN, TREASURY, newcomers[place // 6], self._amount(10**18, 4_000))
            elif place % 60 == 1:
                yield Move(block, LUMEN, TREASURY, DESK, self._amount(10**18, 2_500))
            else:
                sender, recipient = self._random.sample(self.holders[:25], 2)
                yield Move(block, LUMEN, sender, recipient, self._amount(10**18, 2_500))
        for block in blocks[_TOKEN_MOVES:]:
            asset = self._random.choice((USDC, USDC, NATIVE, NATIVE, SPAM))
            other = self._random.choice(self.holders[1:40])
            if asset == NATIVE and self._random.random() < 0.4:
                yield Move(block, asset, TREASURY, None, self._random.randrange(21_000 * 10**9, 10**16))
            elif asset == SPAM:
                yield Move(block, asset, other, TREASURY, self._random.getrandbits(190))
            else:
                unit, most = (10**6, 1_500) if asset == USDC else (10**18, 1)
                parties = (TREASURY, other) if self._random.random() < 0.5 else (other, TREASURY)
                if self._random.random() < 0.05:
                    parties = (TREASURY, TREASURY)
                yield Move(block, asset, *parties, self._amount(unit, most))

    def _amount(self, unit: int, most: int) -> int:
        """Return an amount with decimals, or occasionally a round one."""
        return (
            unit * self._random.randint(1, most)
            if self._random.random() < 0.3
            else self._random.randrange(1, most * unit)
        )

    def _prices(self, asset: str) -> list[str | None]:
        now = {LUMEN: 1_840_000, USDC: 1_000_000, NATIVE: 2_950_123_456}[asset]
        prices: list[str | None] = []
        for day in range(DAYS + 1):
            now += now * self._random.randint(-30, 31) // 1000 if asset != USDC else self._random.randint(-90, 90)
            is_unpriced = asset == LUMEN and day in UNPRICED_DAYS
            prices.append(None if is_unpriced else text_of(now, 6))
        return prices
