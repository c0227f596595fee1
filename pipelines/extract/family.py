"""The protocol that each family of networks implements, in its folder under `pipelines/extract/`.

Collecting and storing use families through this protocol only. Blocks are numbered without gaps and linked by the
hashes of their parents. Addresses and hashes are text in the form that the family's address codec stores. Amounts are
decimal text in base units, 0 or more. Block times are UTC; columns of them are naive, in microseconds. The network's
own asset is the token `native`.

Every method that calls the node raises `ExtractError`, in the kinds of `pipelines.extract.errors` alone:

- `WrongChain`: the node serves another chain.
- `ChainReorganised`: the chain changed while it was read.
- `FalseBlockTime`: times are out of order, or ahead of this machine's clock.
- `StateUnavailable`: the node does not have the state at that block, or no longer.
- `BudgetSpent`: the network used up its time or bytes of this cycle.
- the others: the node gave no usable answer.

docs/adding-a-family.md lists the further duties of a family, and the steps to add one.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

import polars as pl

from control.networks.definitions import Network
from control.pricing.definitions import PriceSource
from control.ranges import BlockRange
from pipelines.extract.budget import Budget
from pipelines.extract.data_sets import FileForm
from pipelines.extract.errors import ExtractError
from pipelines.extract.metering import Meter
from pipelines.extract.prices.protocol import PriceClient
from pipelines.extract.units import Unit, UnreadUnits
from pipelines.rows import Kind, Segment
from pipelines.tables.sources import TABLES
from pipelines.tables.table import RowTable

NATIVE = "native"
"""The network's own asset, in place of a token's address."""

PAST_BALANCES = "past_balances"
"""Capability of a node: it can read balances and supplies of any past block."""

TRACES = "traces"
"""Capability of a node: it can read movements of the network's own asset inside transactions."""

PROVABLE = "provable"
"""Capability of a node: its headers recompute to their hashes, so calling `Node.proven` is worthwhile."""

SLOW_BALANCES = "slow_balances"
"""Capability of a node: it reads balances of any number of wallets at once, but only at its head, and takes minutes.
Cycles read them once a day."""

INPUT_ADDRESSES = "input_addresses"
"""Capability of a node: it names the senders of every transaction, so that they and the fee are known."""

PROVEN_BLOCKS = 100
"""Blocks that one call of `Node.proven` takes at most."""

# Columns of answers: those of the raw tables that store them.
HEADERS = TABLES["blocks"].schema_without("network", "batch_id", "is_tail")
BALANCES = TABLES["balance_observations"].schema_without("network", "purpose", "batch_id", "visible_to")
SUPPLIES = TABLES["supply_observations"].schema_without("network", "batch_id", "visible_to")
METADATA = TABLES["token_metadata"].schema_without("network", "read_at", "tenant_id")
BALANCE_CHANGES = TABLES["balance_observations"].schema("holder_address", "block_number", "quantity_raw")


class Header(NamedTuple):
    """A block's position in the chain; `time` is aware, UTC."""

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
    """Rows of a segment's addresses in a part of its range.

    Attributes:
        covered: blocks of the part; consecutive parts adjoin without a gap.
        rows: by raw table; contains each table of the segment's kind, with its columns even if it has no rows.
        unread: errors because of which movements inside transactions are missing; balance readings then show their
            sums.
        untraced: those of single blocks, which the node cannot trace although it traces others; they are tried again.
        headers: HEADERS of the rows' blocks where these do not come from the node, with parents where they are known.
    """

    covered: BlockRange
    rows: Mapping[str, pl.DataFrame]
    unread: Sequence[ExtractError] = field(default=())
    untraced: Mapping[int, ExtractError] = field(default_factory=dict)
    headers: pl.DataFrame | None = None


class StoredRows(Protocol):
    """Rows that earlier cycles and parts stored, for families that need them to read the next ones."""

    def find(self, query: str, wanted: pl.DataFrame | None = None, **parameters: int | str) -> pl.DataFrame:
        """Return the result of a query in the family's folder.

        Args:
            query: name of its file, without `.sql`. It may use `$network`.
            wanted: the frame that it reads as `wanted`; None: it reads none.
            parameters: its other parameters, by name.
        """


class Node(Protocol):
    """One network's node, behind one or several URLs."""

    network: Network

    stored: StoredRows | None
    """Rows of earlier cycles, and of parts yielded before; the caller sets it. None: none is stored."""

    unread: UnreadUnits | None
    """Units that cannot be read, which the node leaves out; the caller sets it. None: nothing is left out."""

    header_call: str
    """Name of the call in errors about headers."""

    reread_kinds: frozenset[Kind]
    """Kinds of rows of which a second reading can tell more than the first one did."""

    oldest_genesis: datetime
    """Time before which no chain of the family began."""

    @property
    def provider(self) -> str:
        """Name of the provider for records, without keys."""

    @property
    def meter(self) -> Meter:
        """Meter of the node's requests and answers."""

    @property
    def seconds(self) -> float:
        """Time of the network in one cycle; infinite without a budget."""

    def other(self) -> "Node":
        """Open a node that uses another provider than `provider`, where one is configured; the caller closes it."""

    def probe(self) -> frozenset[str]:
        """Find the node's capabilities, before any call except `head`; from then on another chain is refused.

        Returns:
            Capabilities: those of this module, and others that only the family itself uses.
        """

    def head(self) -> Header:
        """Return the newest block that the node knows."""

    def final_number(self, head: Header) -> int:
        """Return the number of the newest final block, at most the head's; -1 where none is final."""

    def headers(self, numbers: Sequence[int]) -> pl.DataFrame:
        """Read headers by number.

        Returns:
            HEADERS; one row per distinct number, ascending; neighbours are linked.

        Raises:
            MalformedAnswer: a block is missing; names it.
        """

    def block_at(self, instant: datetime, head: Header) -> int | None:
        """Return the number of the first block at or after an aware instant; None if the head is before it."""

    def collect(self, segment: Segment, final_number: int) -> Iterator[Part]:
        """Read the rows of the segment's addresses, in parts of a bounded size and in block order.

        Args:
            final_number: newest final block; for a later one, an empty answer is not enough to prove that it is empty.

        Yields:
            Parts that are together exactly the segment's range, including blocks without rows. Parts before a failure
            are yielded before it raises.

        Raises:
            RangeRefused: a single block is refused.
        """

    def check(self, kind: Kind, block_number: int, addresses: Sequence[str] = ()) -> None:
        """Read rows of one block and discard them: a control while the unit at fault is searched.

        Args:
            addresses: whose rows to read; empty: those of an address that nobody uses.

        Raises:
            ExtractError: the node cannot read them.
        """

    def hurry(self, is_hurried: bool) -> None:
        """Set whether to give up an answer after few seconds, while the unit at fault is searched."""

    def derived(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Compute rows of `DERIVED_TABLES` that are not stored yet from the configured addresses; no call of the node.

        Yields:
            A table's name with its rows, without the network; the caller stores them at once.

        Raises:
            BudgetSpent: the time is used up, and wallets with views lack rows. The parts before it are stored.
        """

    def unready(self) -> Sequence[str]:
        """Return the wallets that cannot be collected before more rows of `derived` are stored.

        Their windows and history requests wait; those of other wallets do not.
        """

    def outgrown(self) -> Sequence[str]:
        """Return the wallets with more addresses than their stored rows were collected for.

        All their blocks must be collected again.
        """

    def unopened(self, segment: Segment) -> Set[str]:
        """Return the addresses of a segment that cannot be collected before a survey of them."""

    def survey(self, wallets: Set[str]) -> Header:
        """Read wallets' native balances at the newest block, and return it; requires SLOW_BALANCES.

        From then on, `balances` of this block are those of the survey. Wallets with unproven balances, or with other
        stored rows, are in `unread`.

        Raises:
            ChainReorganised: the block left the chain meanwhile.
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
        """Return whether the node may have the state at the end of that block."""

    def balances(self, pairs: Sequence[tuple[str, str]], block_number: int, block_hash: str) -> pl.DataFrame:
        """Read balances of (token, holder) at the end of a block.

        Returns:
            BALANCES; one row per pair that can be read, in their order. 0 where there is no token at that block, null
            where the token does not return a balance. A pair without a row is in `unread`.
        """

    def supplies(self, tokens: Sequence[str], block_number: int, block_hash: str) -> pl.DataFrame:
        """Read total supplies at the end of a block.

        Returns:
            SUPPLIES; one row per token that can be read, in their order; 0 and null as in `balances`.
        """

    def balance_changes(self, ranges: Sequence[BalanceRange], most_reads: int) -> pl.DataFrame:
        """Find the blocks between two readings at which native balances changed; requires PAST_BALANCES.

        Returns:
            BALANCE_CHANGES: readings in addition to those given. Neighbouring readings that differ are one block apart,
            unless `most_reads` were used up. They are of the current chain; the caller must check that it did not
            change meanwhile.
        """

    def creation(self, token: str, head_number: int) -> int | None:
        """Return the number of the first block after which the token existed; None if it is not there at the head.

        Raises:
            StateUnavailable: the node lacks the past states.
        """

    def likely_holders(self, token: str, created: int | None, block_number: int) -> list[str]:
        """Return likely holders of a token that no movement names: the token itself, its owner, and its creator.

        Args:
            token: address that exists at the block.
            created: first block after which it existed; None if unknown.
            block_number: block after which the owner is read.

        Returns:
            Distinct addresses; those that cannot be found are missing.
        """

    def senders(self, transactions: Sequence[str]) -> list[str | None]:
        """Return the sender of each transaction, given by hash; None where the node does not have it (any more)."""

    def metadata(self, tokens: Sequence[str], block_number: int) -> pl.DataFrame:
        """Read the tokens' own metadata; the rows say if a token returns none or is no token.

        Returns:
            METADATA; one row per token, in their order. contract_status is Fungible, NotFungible, NoContract or
            Unknown.
        """

    def read_units(self, units: Sequence[Unit], head: Header) -> Iterator[tuple[Unit, ExtractError | None]]:
        """Read contracts, calls and wallets once more at the head, one by one; yield each with its error, if any.

        Raises:
            ExtractError: the node answers nothing of the kind.
        """

    def cost_of_full(self, blocks: int) -> str:
        """Describe, in one clause for people, the requests for a wallet's native movements in that many blocks."""

    def close(self) -> None:
        """Close the kept connections."""


class Family(Protocol):
    """Properties that all networks of a family share."""

    @property
    def tables(self) -> Sequence[RowTable]:
        """Raw tables of the family's rows; the first one has most of them."""

    @property
    def data_set_forms(self) -> Mapping[str, FileForm]:
        """Forms of files that hold such rows, by name; empty where there is none."""

    def open(
        self,
        network: Network,
        *,
        timeout: tuple[float, float] = ...,
        max_attempts: int = ...,
        budget: Budget | None = ...,
    ) -> Node:
        """Open a network's node without sending a request; the caller closes it.

        Args:
            timeout: seconds to connect, and to wait for the next bytes.
            max_attempts: per URL.
            budget: of all calls of the node, and of those that it opens by `Node.other`; None: without bound.
        """

    def price_feeds(self, source: PriceSource, network: Network) -> PriceClient:
        """Open the price feeds that the network's definition lists."""
