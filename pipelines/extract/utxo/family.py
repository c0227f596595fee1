"""Networks of outputs behind the pipeline's protocol of families: delegates each method to its module."""

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NoReturn

import polars as pl

from control.networks.definitions import Network
from control.pricing.definitions import PriceSource
from control.ranges import FIRST_BLOCK, BlockRange
from pipelines.extract.budget import Budget
from pipelines.extract.data_sets import FileForm
from pipelines.extract.errors import ChainReorganised, ExtractError, NotProvable, StateUnavailable
from pipelines.extract.family import (
    BALANCES,
    INPUT_ADDRESSES,
    METADATA,
    NATIVE,
    SLOW_BALANCES,
    SUPPLIES,
    BalanceRange,
    Header,
    Part,
)
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.extract.jsonrpc.node import RpcNode
from pipelines.extract.prices.protocol import PriceClient
from pipelines.extract.units import Unit
from pipelines.extract.utxo.blocks import BLOCK_CALL, read_blocks
from pipelines.extract.utxo.collecting import OutputCollector, known_since
from pipelines.extract.utxo.definition import own_definition
from pipelines.extract.utxo.dialect import SCAN_CALL, UTXO
from pipelines.extract.utxo.headers import (
    HEADER_CALL,
    find_first_block_at_or_after,
    is_orphaned,
    read_dated,
    read_head,
    read_headers,
)
from pipelines.extract.utxo.prevouts import Source
from pipelines.extract.utxo.probe import NodeFacts, probe
from pipelines.extract.utxo.surveys import Survey, agreeing, take_survey
from pipelines.extract.utxo.watched import derive_scripts, key_ranges
from pipelines.rows import Kind, Segment
from pipelines.tables.utxo import TABLES, UTXO_SCRIPTS


class UtxoNode(RpcNode):
    """A node of outputs; see `pipelines.extract.family.Node`.

    Args:
        network: its definition.
        client: closed with the node.
    """

    dialect = UTXO
    header_call = HEADER_CALL
    # Blocks are proven when they are collected, and there are no tokens.
    reread_kinds: frozenset[Kind] = frozenset()
    # Bitcoin's genesis block.
    oldest_genesis = datetime(2009, 1, 3, 18, 15, 5, tzinfo=UTC)

    def __init__(self, network: Network, client: RpcClient) -> None:
        super().__init__(network, client)
        self._own = own_definition(network)
        self._probed: NodeFacts | None = None
        self._survey: Survey | None = None
        self._agreeing: frozenset[str] | None = None

    @property
    def _facts(self) -> NodeFacts:
        assert self._probed is not None, "probe a node before other calls"
        return self._probed

    def probe(self) -> frozenset[str]:
        self._probed = probe(self.client, self._own.identity)
        named = {SLOW_BALANCES: True, INPUT_ADDRESSES: self._probed.source is not None}
        return frozenset(name for name, is_there in named.items() if is_there)

    def head(self) -> Header:
        return read_head(self.client, self.network)

    def final_number(self, head: Header) -> int:
        return max(head.number - self.network.finality_depth, -1)

    def headers(self, numbers: Sequence[int]) -> pl.DataFrame:
        return read_headers(self.client, self.network, numbers)

    def block_at(self, instant: datetime, head: Header) -> int | None:
        return find_first_block_at_or_after(self.client, self.network, instant, head)

    def collect(self, segment: Segment, final_number: int) -> Iterator[Part]:
        if segment.kind != "native":
            # There are no tokens.
            return iter([Part(segment.covered, {})])
        source = probe(self.client, self._own.identity).source if self._probed is None else self._probed.source
        return OutputCollector(self.client, self.network, segment, source, self.stored, self._survey_of).parts()

    def _survey_of(self, wallets: Set[str]) -> Survey:
        """Return the kept survey if it has the wallets, else a new one that is not kept."""
        if self._survey is not None and wallets <= self._survey.wallets:
            return self._survey
        return take_survey(self.client, self.network, wallets, self.stored, self.unread)

    def unopened(self, segment: Segment) -> Set[str]:
        if segment.kind != "native" or segment.covered.first <= FIRST_BLOCK:
            return frozenset()
        unknown = set(segment.addresses) - known_since(segment, self.stored).keys()
        return unknown if self._survey is None else unknown - self._survey.wallets

    def survey(self, wallets: Set[str]) -> Header:
        self._survey, self._agreeing = None, None
        found = take_survey(self.client, self.network, wallets, self.stored, self.unread)
        number, hash_ = found.scan[:2]
        (header,) = read_dated(self.client, self.network, [number])
        if header.hash != hash_:
            detail = f"block {number} left the chain while its outputs were scanned"
            raise ChainReorganised(self.network.name, SCAN_CALL, number, number, detail, block_number=number)
        self._survey = found
        return header

    def check(self, kind: Kind, block_number: int, addresses: Sequence[str] = ()) -> None:
        for _ in read_blocks(self.client, self.network, BlockRange(block_number, block_number)):
            pass

    def derived(self) -> Iterator[tuple[str, pl.DataFrame]]:
        for rows in derive_scripts(self.network, key_ranges(self.stored), self.client.budget):
            yield UTXO_SCRIPTS.name, rows

    def unready(self) -> list[str]:
        return [one.wallet for one in key_ranges(self.stored) if not one.is_ready]

    def outgrown(self) -> list[str]:
        return [one.wallet for one in key_ranges(self.stored) if one.is_outgrown]

    def proven(self, segment: Segment, hashes: Mapping[int, str]) -> Mapping[str, pl.DataFrame]:
        detail = "every block is proven when it is collected"
        raise NotProvable(self.network.name, BLOCK_CALL, *segment.covered, detail, reason="kind")

    def keeps_state(self, block_number: int, head: Header) -> bool:
        # All balances before the first block are 0: the genesis block's coinbase cannot be spent.
        return block_number in (FIRST_BLOCK - 1, head.number)

    def balances(self, pairs: Sequence[tuple[str, str]], block_number: int, block_hash: str) -> pl.DataFrame:
        if block_number < FIRST_BLOCK:
            rows = [(NATIVE, holder, block_number, block_hash, "0") for _, holder in pairs]
            return pl.DataFrame(rows, schema=BALANCES, orient="row")
        survey = self._survey_of({holder for token, holder in pairs if token == NATIVE})
        if survey.scan[:2] != (block_number, block_hash):
            names = (self.network.name, SCAN_CALL, block_number, block_number)
            if is_orphaned(self.client, block_hash):
                detail = f"block {block_number} left the chain before its balances were read"
                raise ChainReorganised(*names, detail, block_number=block_number)
            detail = f"the node scans its newest block alone, which is {survey.scan.block_number} by now"
            raise StateUnavailable(*names, detail)
        wallets = survey.wallets
        if survey is self._survey and self.stored is not None and self.unread is not None:
            if self._agreeing is None:
                self._agreeing = agreeing(self.network, survey, self.stored, self.unread)
            wallets = self._agreeing
        sums = survey.sums()
        rows = [
            (token, holder, block_number, block_hash, str(sums[holder]))
            for token, holder in pairs
            if token == NATIVE and holder in wallets
        ]
        return pl.DataFrame(rows, schema=BALANCES, orient="row")

    def supplies(self, tokens: Sequence[str], block_number: int, block_hash: str) -> pl.DataFrame:
        assert not tokens, "the family has no tokens"
        return pl.DataFrame(schema=SUPPLIES)

    def balance_changes(self, ranges: Sequence[BalanceRange], most_reads: int) -> NoReturn:
        raise AssertionError("the node has no past balances")

    def creation(self, token: str, head_number: int) -> None:
        return None

    def likely_holders(self, token: str, created: int | None, block_number: int) -> list[str]:
        return []

    def senders(self, transactions: Sequence[str]) -> list[str | None]:
        return [None] * len(transactions)

    def metadata(self, tokens: Sequence[str], block_number: int) -> pl.DataFrame:
        assert not tokens, "the family has no tokens"
        return pl.DataFrame(schema=METADATA)

    def read_units(self, units: Sequence[Unit], head: Header) -> Iterator[tuple[Unit, ExtractError | None]]:
        assert not units, "the family has no contracts, and one scan reads all wallets"
        return iter(())

    def cost_of_full(self, blocks: int) -> str:
        source = self._facts.source
        inputs = {
            Source.BLOCK: ", with the spent outputs of blocks before the first scan",
            Source.INDEX: ", and each spent output of blocks before the first scan from the node's index",
            None: ", without spent outputs from before the range: the node does not give them",
        }[source]
        return f"full reads {blocks} whole blocks{inputs}"


class UtxoFamily:
    """All networks of outputs; see `pipelines.extract.family.Family`."""

    tables = TABLES
    data_set_forms: Mapping[str, FileForm] = MappingProxyType({})

    def open(
        self,
        network: Network,
        *,
        timeout: tuple[float, float] = (5.0, 30.0),
        max_attempts: int = 6,
        budget: Budget | None = None,
    ) -> UtxoNode:
        return UtxoNode.open(network, timeout=timeout, max_attempts=max_attempts, budget=budget)

    def price_feeds(self, source: PriceSource, network: Network) -> PriceClient:
        raise AssertionError(f"{network.name} has no contracts, and so no price feeds")
