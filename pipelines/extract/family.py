"""The protocol that each family of networks implements, in its folder under `pipelines/extract/`.

Collecting and storing know families by this protocol alone. Blocks are numbered without gaps and linked by the hashes
of their parents. Addresses and hashes are text in the form that the family's address codec stores. Amounts are decimal
text in base units, 0 or more. Block times are UTC; columns of them naive, in microseconds. The network's own asset is
the token `native`.

Every method that calls the node raises `ExtractError`, in the kinds of `pipelines.extract.errors` alone:

- `WrongChain`: the node serves another chain.
- `ChainReorganised`: the chain changed while it was read.
- `FalseBlockTime`: times are out of order, or ahead of this machine's clock.
- `StateUnavailable`: the node does not have the state at that block, or no longer.
- `BudgetSpent`: the network used up its time or bytes of this cycle.
- the others: the node gave no usable answer.

docs/adding-a-family.md lists the further duties of a family, and the steps to add one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

import polars as pl

from control.networks.definitions import Network
from control.pricing.definitions import PriceSource
from pipelines.extract.budget import Budget
from pipelines.extract.errors import ExtractError
from pipelines.extract.metering import Meter
from pipelines.extract.prices.protocol import PriceClient
from pipelines.ranges import BlockRange
from pipelines.rows import Segment
from pipelines.tables.sources import TABLES
from pipelines.tables.table import RowTable

NATIVE = "native"
"""The network's own asset, where a token is named."""

PAST_BALANCES = "past_balances"
"""Capability of a node: balances and supplies of any past block can be read."""

TRACES = "traces"
"""Capability of a node: movements of the network's own asset inside transactions can be read."""

PROVABLE = "provable"
"""Capability of a node: the hashes of its headers can be recomputed, so `Node.proven` is worth a call."""

PROVEN_BLOCKS = 100
"""Blocks that one call of `Node.proven` takes at most."""

# What answers look like: columns of the raw tables that they go to.
HEADERS = TABLES["blocks"].schema_without("network", "batch_id", "is_tail")
BALANCES = TABLES["balance_observations"].schema_without("network", "purpose", "batch_id", "visible_to")
SUPPLIES = TABLES["supply_observations"].schema_without("network", "batch_id", "visible_to")
METADATA = TABLES["token_metadata"].schema_without("network", "read_at", "tenant_id")
BALANCE_CHANGES = TABLES["balance_observations"].schema("holder_address", "block_number", "quantity_raw")


class Header(NamedTuple):
    """A block's place in the chain; `time` is aware, UTC."""

    number: int
    hash: str
    parent_hash: str
    time: datetime


class BalanceRange(NamedTuple):
    """A wallet's native balance (base units) at the ends of two blocks, the first before the second."""

    wallet: str
    low_block: int
    high_block: int
    low_quantity: int
    high_quantity: int


@dataclass(frozen=True)
class Part:
    """What a segment's addresses did in a part of its range.

    Attributes:
        covered: consecutive parts follow one another without a gap.
        rows: by raw table; each table of the segment's kind is there, with its columns also where it has no rows.
        unread: why movements inside transactions are missing; readings of balances show their sums then.
    """

    covered: BlockRange
    rows: Mapping[str, pl.DataFrame]
    unread: Sequence[ExtractError] = field(default=())


class Node(Protocol):
    """One network's node, behind one or several URLs."""

    network: Network

    header_call: str
    """What errors about headers name as the call."""

    oldest_genesis: datetime
    """No chain of the family is older."""

    @property
    def provider(self) -> str:
        """Whom it asks, for the record; without keys."""

    @property
    def meter(self) -> Meter:
        """Counts what it asks."""

    def other(self) -> "Node":
        """Open a node that asks somebody else than `provider`, where several are configured; the caller closes it."""

    def probe(self) -> frozenset[str]:
        """Ask what the node can do, before anything but its head; from then on another chain is refused.

        Returns:
            Capabilities: those of this module, and others that only the family itself understands.
        """

    def head(self) -> Header:
        """The newest block that the node knows."""

    def final_number(self, head: Header) -> int:
        """Number of the newest final block, none after the head; -1 where none is final."""

    def headers(self, numbers: Sequence[int]) -> pl.DataFrame:
        """Read headers by number.

        Returns:
            HEADERS; one row per distinct number, ascending; neighbours are linked.

        Raises:
            MalformedAnswer: a block is missing; names it.
        """

    def block_at(self, instant: datetime, head: Header) -> int | None:
        """Number of the first block whose time is at or after an aware instant; None when the head is before it."""

    def collect(self, segment: Segment, final_number: int) -> Iterator[Part]:
        """Read what the segment's addresses did, in parts of a bounded size and in block order.

        Args:
            final_number: newest final block; that nothing happened in a later one needs more than an empty answer.

        Yields:
            Parts that are together exactly the segment's range, also where nothing happened. What came before a failure
            is given out before it.

        Raises:
            RangeRefused: a single block is refused.
        """

    def proven(self, segment: Segment, hashes: Mapping[int, str]) -> Mapping[str, pl.DataFrame]:
        """Prove the rows of a segment's addresses: read whole blocks and recompute their hashes.

        Slow, because it reads one whole block per number: use it for the few blocks in which two readings differ.

        Args:
            segment: its range is at most `PROVEN_BLOCKS` long.
            hashes: the stored block hash of each number of the range.

        Returns:
            Rows of exactly the range, in the form and order of `Part.rows`, computed from all receipts of each block.

        Raises:
            NotProvable: the node lacks the block or its receipts, or they do not fit the stored hash; see `reason`. A
                family without such proofs raises it always, and so does the kind `native` of one that proves logs.
            ExtractError: the node does not answer at all. Nothing follows about the rows.
        """

    def keeps_state(self, block_number: int, head: Header) -> bool:
        """Whether it is worth asking for a balance at the end of that block."""

    def balances(self, pairs: Sequence[tuple[str, str]], block_number: int, block_hash: str) -> pl.DataFrame:
        """Read balances of (token, holder) at the end of a block.

        Returns:
            BALANCES; one row per pair, in their order. 0 where there is no token at that block, null where it tells
            none.
        """

    def supplies(self, tokens: Sequence[str], block_number: int, block_hash: str) -> pl.DataFrame:
        """Read total supplies at the end of a block.

        Returns:
            SUPPLIES; one row per token, in their order; 0 and null as in `balances`.
        """

    def balance_changes(self, ranges: Sequence[BalanceRange], most_reads: int) -> pl.DataFrame:
        """Find the blocks between two readings at which native balances changed; asked only with PAST_BALANCES.

        Returns:
            BALANCE_CHANGES: readings besides those given, such that neighbouring ones that differ are one block apart,
            unless `most_reads` were used up. They are of the chain as it is now: that it did not move is for the caller
            to check.
        """

    def creation(self, token: str, head_number: int) -> int | None:
        """Number of the first block at whose end the token was there; None where it is not at the head.

        Raises:
            StateUnavailable: the node cannot tell.
        """

    def likely_holders(self, token: str, created: int | None, block_number: int) -> list[str]:
        """Who may hold a token although no movement named them: itself, its owner, and who created it.

        Args:
            token: that is there at the block.
            created: first block at whose end it was there; None where nobody knows.
            block_number: at whose end it is asked for its owner.

        Returns:
            Distinct addresses; those that cannot be found are missing.
        """

    def senders(self, transactions: Sequence[str]) -> list[str | None]:
        """Who sent each of the transactions, by their hashes; None where the node has not got it (any more)."""

    def metadata(self, tokens: Sequence[str], block_number: int) -> pl.DataFrame:
        """Read what tokens say of themselves; a token that tells nothing, or is none, is described as such.

        Returns:
            METADATA; one row per token, in their order. contract_status is Fungible, NotFungible, NoContract or
            Unknown.
        """

    def cost_of_full(self, blocks: int) -> str:
        """What collecting so many blocks of a wallet's native movements asks of the node: one clause for people."""

    def close(self) -> None:
        """Close the kept connections."""


class Family(Protocol):
    """What is the same for every network of a family."""

    @property
    def tables(self) -> Sequence[RowTable]:
        """Where its rows go; the first one has most of them."""

    def open(
        self,
        network: Network,
        *,
        timeout: tuple[float, float] = ...,
        max_attempts: int = ...,
        budget: Budget | None = ...,
    ) -> Node:
        """Open a network's node; the caller closes it. Asks nothing yet.

        Args:
            timeout: seconds to connect, and to wait for the next bytes.
            max_attempts: per URL.
            budget: of all calls of the node, and of those that it opens by `Node.other`; None: without bound.
        """

    def price_feeds(self, source: PriceSource, network: Network) -> PriceClient:
        """Open the price feeds that the network's definition lists."""
