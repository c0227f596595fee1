"""The EVM networks behind the pipeline's protocol of families: delegates each method to its module."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import polars as pl

from control.networks.definitions import Network
from control.pricing.definitions import PriceSource
from pipelines.extract.budget import Budget
from pipelines.extract.data_sets import FileForm
from pipelines.extract.errors import ExtractError, NotProvable
from pipelines.extract.evm.balances import read_balances, read_supplies
from pipelines.extract.evm.blocks import (
    HEADER_CALL,
    RECEIPTS_CALL,
    find_first_block_at_or_after,
    read_final_number,
    read_head,
    read_headers,
)
from pipelines.extract.evm.collecting import check_block, collect_native, collect_transfers
from pipelines.extract.evm.definition import own_definition
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.feeds import FeedClient
from pipelines.extract.evm.forms import FORMS
from pipelines.extract.evm.holders import read_likely_holders, read_senders
from pipelines.extract.evm.metadata import read_contracts
from pipelines.extract.evm.narrowing import find_balance_changes, find_creation_block
from pipelines.extract.evm.probe import NodeFacts, probe
from pipelines.extract.evm.proofs import prove_transfers
from pipelines.extract.evm.state import BlockPoint, read_units
from pipelines.extract.family import (
    INPUT_ADDRESSES,
    METADATA,
    PAST_BALANCES,
    PROVABLE,
    TRACES,
    BalanceRange,
    Header,
    Part,
)
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.extract.jsonrpc.node import RpcNode
from pipelines.extract.units import Unit
from pipelines.rows import Kind, Segment
from pipelines.tables.evm import TABLES, TOKEN_TRANSFERS

# A node without archive keeps the state of about this many blocks, and that of the genesis block.
_KEPT_STATES = 128


class EvmNode(RpcNode):
    """An EVM network's node; see `pipelines.extract.family.Node`.

    Args:
        network: its definition.
        client: closed with the node.
    """

    dialect = EVM
    header_call = HEADER_CALL
    reread_kinds: frozenset[Kind] = frozenset({"token", "wallet", "native"})
    # Ethereum's genesis block.
    oldest_genesis = datetime(2015, 7, 30, 15, 26, 13, tzinfo=UTC)

    def __init__(self, network: Network, client: RpcClient) -> None:
        super().__init__(network, client)
        self._own = own_definition(network)
        self._probed: NodeFacts | None = None

    @property
    def _facts(self) -> NodeFacts:
        assert self._probed is not None, "probe a node before other calls"
        return self._probed

    def probe(self) -> frozenset[str]:
        self._probed = probe(self.client, self._own.chain_id, self._own.multicall_address)
        named = {
            PAST_BALANCES: self._probed.has_archive,
            TRACES: self._probed.trace_method is not None,
            PROVABLE: self._probed.recomputes_headers,
            INPUT_ADDRESSES: True,
            "multicall": self._probed.multicall is not None,
        }
        return frozenset(name for name, is_there in named.items() if is_there)

    def head(self) -> Header:
        return read_head(self.client)

    def final_number(self, head: Header) -> int:
        return read_final_number(self.client, head, self.network.finality_depth)

    def headers(self, numbers: Sequence[int]) -> pl.DataFrame:
        return read_headers(self.client, numbers)

    def block_at(self, instant: datetime, head: Header) -> int | None:
        return find_first_block_at_or_after(self.client, instant, head)

    def collect(self, segment: Segment, final_number: int) -> Iterator[Part]:
        if segment.kind == "native":
            if self._probed is None:
                # A second reading by a node that reads no state.
                self.probe()
            return collect_native(self.client, segment, self._facts.trace_method)
        return collect_transfers(self.client, segment, final_number, self._own.max_log_range)

    def check(self, kind: Kind, block_number: int, addresses: Sequence[str] = ()) -> None:
        check_block(self.client, kind, block_number, addresses)

    def outgrown(self) -> Sequence[str]:
        return ()

    def proven(self, segment: Segment, hashes: Mapping[int, str]) -> Mapping[str, pl.DataFrame]:
        if segment.kind == "native":
            detail = "not provable: receipts do not contain what moves inside transactions"
            raise NotProvable(self.network.name, RECEIPTS_CALL, *segment.covered, detail, reason="kind")
        return {TOKEN_TRANSFERS.name: prove_transfers(self.client, segment, hashes)}

    def keeps_state(self, block_number: int, head: Header) -> bool:
        return self._facts.has_archive or block_number == 0 or block_number > head.number - _KEPT_STATES

    def balances(self, pairs: Sequence[tuple[str, str]], block_number: int, block_hash: str) -> pl.DataFrame:
        return read_balances(self.client, pairs, block_hash, block_number, self._facts.multicall, self.unread)

    def supplies(self, tokens: Sequence[str], block_number: int, block_hash: str) -> pl.DataFrame:
        return read_supplies(self.client, tokens, block_hash, block_number, self._facts.multicall, self.unread)

    def balance_changes(self, ranges: Sequence[BalanceRange], most_reads: int) -> pl.DataFrame:
        return find_balance_changes(self.client, ranges, most_reads)

    def creation(self, token: str, head_number: int) -> int | None:
        return find_creation_block(self.client, token, head_number)

    def likely_holders(self, token: str, created: int | None, block_number: int) -> list[str]:
        return read_likely_holders(self.client, token, created, block_number)

    def senders(self, transactions: Sequence[str]) -> list[str | None]:
        return read_senders(self.client, transactions)

    def metadata(self, tokens: Sequence[str], block_number: int) -> pl.DataFrame:
        rows = [
            (one.address, one.contract_status, one.standard, one.symbol, one.name, one.decimals, one.detail)
            for one in read_contracts(self.client, tokens, block_number, self._facts.multicall, self.unread)
        ]
        return pl.DataFrame(rows, schema=METADATA, orient="row")

    def read_units(self, units: Sequence[Unit], head: Header) -> Iterator[tuple[Unit, ExtractError | None]]:
        return read_units(self.client, units, BlockPoint(head.number, head.hash))

    def cost_of_full(self, blocks: int) -> str:
        traces = (
            f" and {blocks} block traces"
            if self._facts.trace_method is not None
            else ", without internal transfers: the node has no traces"
        )
        return f"full reads {blocks} whole blocks with the wallet's receipts{traces}"


class EvmFamily:
    """All EVM networks; see `pipelines.extract.family.Family`."""

    tables = TABLES
    data_set_forms: Mapping[str, FileForm] = FORMS

    def open(
        self,
        network: Network,
        *,
        timeout: tuple[float, float] = (5.0, 30.0),
        max_attempts: int = 6,
        budget: Budget | None = None,
    ) -> EvmNode:
        return EvmNode.open(network, timeout=timeout, max_attempts=max_attempts, budget=budget)

    def price_feeds(self, source: PriceSource, network: Network) -> FeedClient:
        return FeedClient(source, network)
