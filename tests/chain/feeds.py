"""Price feeds on a world's chain with scripted answers.

Tests and the demo compare the service's prices with these scripts, which do not use the service's code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

from tests.chain.world import World, call_data

_MOST_ROUNDS = 500
_ROUND_GAS = 130_000


@dataclass
class ScriptedFeed:
    """A deployed feed: `address` is the one to configure; `aggregators` are the contracts behind it, one per phase.

    `prices` has the answers by `updatedAt` in Unix seconds.
    """

    world: World
    base: str
    quote: str
    decimals: int
    address: str
    aggregators: list[str]
    prices: dict[int, Decimal] = field(default_factory=dict)

    def answer(self, price: str | Decimal, updated_at: int | None = None) -> int:
        """Queue the next round for the next block; default time: that of a block mined now.

        Returns:
            Its `updatedAt`, Unix seconds.
        """
        return self.answer_many({self._next_time() if updated_at is None else updated_at: price})

    def answer_many(self, path: Mapping[int, str | Decimal]) -> int:
        """Queue rounds in the order of the mapping from `updatedAt` in Unix seconds to price.

        Returns:
            The last one's `updatedAt`.
        """
        times = list(path)
        for start in range(0, len(times), _MOST_ROUNDS):
            piece = times[start : start + _MOST_ROUNDS]
            units = [self._units(path[second]) for second in piece]
            self._submit("answer_many", units, piece, gas=100_000 + _ROUND_GAS * len(piece))
        self.prices |= {second: Decimal(path[second]) for second in times}
        return times[-1]

    def write_round(self, round_id: int, answer: int, updated_at: int, answered_in: int | None = None) -> None:
        """Queue a raw round with the current aggregator's own ids; `prices` does not include it."""
        self._submit("write_round", round_id, answer, updated_at, round_id if answered_in is None else answered_in)

    def begin_phase(self) -> None:
        """Deploy another aggregator and switch the feed to it."""
        aggregator = _deploy_aggregator(self.world, self.base, self.quote, self.decimals)
        self.aggregators.append(aggregator)
        self.world.submit(self.world.deployer, self.address, call_data("FeedProxy", "begin_phase", aggregator))

    def at(self, instant: datetime) -> Decimal | None:
        """Return the scripted price in force at an instant; None before the first answer."""
        reached = [second for second in self.prices if second <= instant.timestamp()]
        return self.prices[max(reached)] if reached else None

    def definition(self) -> str:
        """Return the feed as an entry of a network's definition."""
        return f'[[network.feed]]\nbase = "{self.base}"\nquote = "{self.quote}"\naddress = "{self.address}"\n'

    def _units(self, price: str | Decimal) -> int:
        units = Fraction(price) * 10**self.decimals
        assert units.denominator == 1, f"{price} has more than {self.decimals} decimals"
        return units.numerator

    def _next_time(self) -> int:
        return self.world.node.block_time(self.world.node.head()) + self.world.block_seconds

    def _submit(self, function: str, *arguments: object, gas: int = 1_000_000) -> None:
        self.world.submit(self.world.deployer, self.aggregators[-1], call_data("Feed", function, *arguments), gas=gas)


def deploy_feed(
    world: World, base: str, quote: str = "USD", decimals: int = 8, *, proxied: bool = True
) -> ScriptedFeed:
    """Deploy a feed without a round, behind a proxy as Chainlink's are; or a bare aggregator."""
    aggregator = _deploy_aggregator(world, base, quote, decimals)
    address = world.deploy("FeedProxy", aggregator) if proxied else aggregator
    return ScriptedFeed(world, base, quote, decimals, address, [aggregator])


def price_path(prices: Sequence[str], first: datetime, step_seconds: int) -> dict[int, str]:
    """Return a path of prices at equal steps of time for `answer_many`."""
    start = int(first.astimezone(UTC).timestamp())
    return {start + step_seconds * number: price for number, price in enumerate(prices)}


def _deploy_aggregator(world: World, base: str, quote: str, decimals: int) -> str:
    return world.deploy("Feed", f"{base} / {quote}", decimals)
