"""Price feeds on a chain: contracts that answer with a price, as Chainlink's aggregators do, in rounds.

A feed's address is usually a proxy, and a round's id has two parts. The bits above the lower 64 number the phases of
the feed, one per aggregator. The lower 64 bits number the rounds of that aggregator.
Source: https://docs.chain.link/data-feeds/historical-data
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from control.clock import utc_now
from control.networks.definitions import Network
from control.pricing.definitions import PriceSource
from pipelines.extract.errors import ExtractError, MarketUnknown, SourceMalformed
from pipelines.extract.evm.blocks import read_head
from pipelines.extract.evm.contracts import ROUND, calldata, decode_words
from pipelines.extract.evm.definition import own_definition
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.hexadecimal import word_to_int
from pipelines.extract.evm.state import BlockPoint, Output, Read, read_state
from pipelines.extract.family import Header
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.extract.prices.exact import exact_price
from pipelines.extract.prices.protocol import HistoryPage, Market, MarketPrice, PollResult, Problem

_DECIMALS = calldata("decimals")
_LATEST_ROUND_DATA = calldata("latestRoundData")
_NOBODY = f"0x{0:040x}"

_PHASE_BITS = 64
_LARGEST_DECIMALS = 255
_LATEST_TIME = 10**11
# One eth_call through Multicall3, with the decimals.
ROUNDS_PER_BATCH = 499
PROBES = 64
_FIRST_ROUNDS = 20


class _Round(NamedTuple):
    """One answer of a feed: time in Unix seconds, and the answer in units of the feed's decimals."""

    id: int
    answer: int
    updated_at: int
    answered_in: int


@dataclass(frozen=True)
class _Phase:
    """One aggregator of a feed: rounds `first` to `last`, by their ids at the feed's own address."""

    first: int
    last: int


class FeedClient:
    """The feeds of one network.

    Args:
        source: its definition.
        network: where the feeds are.
        now: replaced in tests.
    """

    def __init__(self, source: PriceSource, network: Network, *, now: Callable[[], datetime] = utc_now) -> None:
        self._source = source
        self._feeds = {feed.address: feed for feed in network.feeds}
        own = own_definition(network)
        self._multicall = own.multicall_address
        self._now = now
        timeout = (min(5.0, source.timeout_seconds), source.timeout_seconds)
        self._client = RpcClient(network.name, network.rpc_urls, EVM, timeout=timeout, max_attempts=source.max_attempts)
        self._client.expect_chain(own.identity)

    def markets(self) -> list[Market]:
        """As `PriceClient.markets`; a feed is active where a contract answers at its address."""
        _, outputs = self._ask([Read(address, _LATEST_ROUND_DATA) for address in self._feeds])
        answering = {
            address
            for address, output in zip(self._feeds, outputs, strict=True)
            # A feed that cannot be read now may answer later.
            if isinstance(output, ExtractError) or _round(output)
        }
        return [
            Market(feed.address, feed.base, feed.quote, feed.base, feed.quote, feed.address in answering)
            for feed in sorted(self._feeds.values(), key=lambda feed: feed.address)
        ]

    def poll(self, wanted: Sequence[tuple[str, str]]) -> PollResult:
        """As `PriceClient.poll`: the answers of all feeds at one block, each effective from its `updatedAt` on."""
        addresses = list(dict.fromkeys(market_id for market_id, _ in wanted if market_id in self._feeds))
        calls = [Read(address, calldata) for address in addresses for calldata in (_DECIMALS, _LATEST_ROUND_DATA)]
        head, outputs = self._ask(calls) if calls else (None, [])
        answers = dict(zip(addresses, zip(outputs[::2], outputs[1::2], strict=True), strict=True))
        prices, problems = [], []
        for market_id, price_type in dict.fromkeys(wanted):
            try:
                if price_type not in self._source.price_types:
                    raise ValueError(f"{self._source.name} supply no {price_type} prices")
                if head is None or market_id not in answers:
                    raise ValueError("the network defines no such feed (any more)")
                decimals, answered = answers[market_id]
                newest = _round(_known(answered))
                if newest is None:
                    raise ValueError("no round in the contract's answer")
                prices.append(self._price(market_id, newest, _decimals(_known(decimals)), head))
            except (ValueError, ExtractError) as error:
                problems.append(Problem(market_id, price_type, str(error)))
        return PollResult(prices, problems)

    def history(
        self, market_id: str, price_type: str, granularity: str, start: datetime, end: datetime
    ) -> Iterator[HistoryPage]:
        """As `PriceClient.history`: every round, from its `updatedAt` on; the last of several in one second.

        A phase's rounds count until the first round of the next phase. If a feed does not name the aggregators of
        earlier phases, only the current phase is found.
        """
        if price_type not in self._source.history_types or granularity not in self._source.granularities:
            raise ValueError(f"{self._source.id} has no history of {price_type} in steps of {granularity}")
        if market_id not in self._feeds:
            raise MarketUnknown(self._source.id, "history", f"the network defines no feed {market_id} (any more)")
        after, until = int(start.timestamp()), int(end.timestamp())
        reached, problems = start, list[Problem]()
        held: list[_Round] = []
        for batch in self._batches(market_id, after):
            by_time = {found.updated_at: found for found in (*held, *batch.rounds) if after < found.updated_at <= until}
            rounds = [by_time[second] for second in sorted(by_time) if _instant(second) > reached]
            problems += _late(market_id, price_type, batch, after, reached)
            # A round dated in the future says nothing about those after it.
            is_over = any(end < _instant(found.updated_at) <= batch.head.time for found in batch.rounds)
            # The next batch may have another round of this one's last second.
            rounds, held = (rounds, []) if is_over else (rounds[:-1], rounds[-1:])
            prices, wrong = self._prices(market_id, price_type, batch, rounds)
            problems += wrong
            up_to = end if is_over or not held else _instant(held[0].updated_at) - timedelta(microseconds=1)
            if is_over or (held and up_to > reached):
                yield HistoryPage(prices, up_to, tuple(problems))
                reached, problems = up_to, []
            if is_over:
                return
        head, outputs = self._read([Read(market_id, _DECIMALS)])
        prices, wrong = self._prices(market_id, price_type, _Batch(head, outputs[0], [], 0, 0), held)
        yield HistoryPage(prices, end, (*problems, *wrong))

    def close(self) -> None:
        """Close the kept connections."""
        self._client.close()

    def _ask(self, calls: Sequence[Read]) -> tuple[Header, list[Output]]:
        """Read at the newest block, and return its header too. Any block will do, because rounds never change."""
        head = read_head(self._client)
        return head, read_state(self._client, calls, BlockPoint(head.number, head.hash), self._multicall)

    def _read(self, calls: Sequence[Read]) -> tuple[Header, list[str | None]]:
        """Read the calls of one feed, as `_ask`; a call that cannot be read is an error."""
        head, outputs = self._ask(calls)
        return head, [_known(output) for output in outputs]

    def _read_rounds(self, address: str, ids: Sequence[int]) -> list[_Round | None]:
        _, outputs = self._read([Read(address, calldata("getRoundData", number)) for number in ids])
        return [_round(output) for output in outputs]

    def _batches(self, address: str, after: int) -> Iterator["_Batch"]:
        """Yield the rounds from about `after` on, in order; a phase ends at the first round of the next one."""
        phases = self._phases(address)
        for number, phase in enumerate(phases):
            ends = self._first_time(address, phases[number + 1]) if number + 1 < len(phases) else None
            position = self._last_until(address, phase, after) + 1
            while position <= phase.last:
                ids = range(position, min(position + ROUNDS_PER_BATCH, phase.last + 1))
                calls = [Read(address, calldata("getRoundData", round_id)) for round_id in ids]
                head, outputs = self._read([Read(address, _DECIMALS), *calls])
                rounds = [found for output in outputs[1:] if (found := _round(output)) is not None]
                counting = [found for found in rounds if ends is None or found.updated_at < ends]
                yield _Batch(head, outputs[0], counting, len(ids) - len(rounds), ids.start)
                if len(counting) < len(rounds):
                    break
                position = ids.stop

    def _phases(self, address: str) -> list[_Phase]:
        """Return the phases of a feed, oldest first, without those that have no round.

        Raises:
            SourceMalformed: the feed answers with no round.
        """
        newest = _round(self._read([Read(address, _LATEST_ROUND_DATA)])[1][0])
        if newest is None:
            raise SourceMalformed(self._source.id, "latestRoundData", f"no round in the answer of feed {address}")
        present = newest.id >> _PHASE_BITS
        earlier = range(1, present)
        _, outputs = self._read([Read(address, calldata("phaseAggregators", phase)) for phase in earlier])
        aggregators = {
            phase: aggregator
            for phase, output in zip(earlier, outputs, strict=True)
            for aggregator in decode_words(["address"], output) or ()
            if aggregator != _NOBODY
        }
        _, outputs = self._read([Read(aggregator, _LATEST_ROUND_DATA) for aggregator in aggregators.values()])
        phases = []
        for phase, output in zip(aggregators, outputs, strict=True):
            last = _round(output)
            if last is not None:
                first = phase << _PHASE_BITS
                phases.append(_Phase(first + 1, first + last.id % (1 << _PHASE_BITS)))
        return [*phases, _Phase((present << _PHASE_BITS) + 1, newest.id)]

    def _first_time(self, address: str, phase: _Phase) -> int | None:
        """Return the time of a phase's first round; None where its first ones have no answer."""
        ids = range(phase.first, min(phase.first + _FIRST_ROUNDS, phase.last + 1))
        return next((found.updated_at for found in self._read_rounds(address, ids) if found is not None), None)

    def _last_until(self, address: str, phase: _Phase, after: int) -> int:
        """Return the id of a round at or before a time, with less than a batch of such rounds after it.

        Rounds without an answer have no time and are skipped. The search ends when there are only such rounds in
        between.
        """
        low, high = phase.first - 1, phase.last + 1
        while high - low > ROUNDS_PER_BATCH:
            probes = [low + (high - low) * part // (PROBES + 1) for part in range(1, PROBES + 1)]
            found = [probe for probe in self._read_rounds(address, probes) if probe is not None]
            above = min((probe.id for probe in found if probe.updated_at > after), default=high)
            below = max((probe.id for probe in found if probe.updated_at <= after and probe.id < above), default=low)
            if (below, above) == (low, high):
                break
            low, high = below, above
        return low

    def _prices(
        self, address: str, price_type: str, batch: "_Batch", rounds: Sequence[_Round]
    ) -> tuple[list[MarketPrice], tuple[Problem, ...]]:
        prices, problems = [], []
        if batch.missing:
            detail = f"{batch.missing} of the rounds from {batch.first_id} on have no answer"
            problems.append(Problem(address, price_type, detail))
        for found in rounds:
            try:
                prices.append(self._price(address, found, _decimals(batch.decimals), batch.head))
            except ValueError as error:
                problems.append(Problem(address, price_type, f"round {found.id}: {error}"))
        return prices, tuple(problems)

    def _price(self, address: str, found: _Round, decimals: int, head: Header) -> MarketPrice:
        """Return a round's price.

        Raises:
            ValueError: it is no price; says why.
        """
        if found.answered_in < found.id:
            raise ValueError("the round is not complete: its answer is an earlier round's")
        effective_from = _instant(found.updated_at)
        if effective_from > min(head.time, self._now()):
            raise ValueError(f"updatedAt is {effective_from:%Y-%m-%dT%H:%M:%SZ}, which is in the future")
        price = exact_price(f"{found.answer}e-{decimals}")
        return MarketPrice(address, self._source.price_types[0], effective_from, None, price)


@dataclass(frozen=True)
class _Batch:
    """Rounds that were read together at one block: those with an answer, and the number of those without."""

    head: Header
    decimals: str | None
    rounds: list[_Round]
    missing: int
    first_id: int


def _late(address: str, price_type: str, batch: _Batch, after: int, reached: datetime) -> list[Problem]:
    """Return a problem for each round dated before a time that the history has already passed."""
    return [
        Problem(address, price_type, f"round {found.id}: updatedAt is before that of an earlier round")
        for found in batch.rounds
        if found.updated_at > after and _instant(found.updated_at) <= reached
    ]


def _known(output: Output) -> str | None:
    """Return the answer of a call; raise the error of one that cannot be read."""
    if isinstance(output, ExtractError):
        raise output
    return output


def _round(output: str | None) -> _Round | None:
    """Return a round from an answer of latestRoundData or getRoundData; None where there is none (yet)."""
    found = decode_words(ROUND, output)
    if found is None:
        return None
    round_id, answer, _, updated_at, answered_in = found
    return _Round(round_id, answer, updated_at, answered_in) if 0 < updated_at < _LATEST_TIME else None


def _decimals(output: str | None) -> int:
    decimals = word_to_int(output)
    if decimals is None or decimals > _LARGEST_DECIMALS:
        raise ValueError("the contract does not return its decimals")
    return decimals


def _instant(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
