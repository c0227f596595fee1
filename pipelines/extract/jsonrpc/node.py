"""The part of a node that all families with JSON-RPC share."""

import math
from collections.abc import Iterator, Sequence, Set
from typing import Self

import polars as pl

from control.networks.definitions import Network
from pipelines.extract.budget import Budget
from pipelines.extract.family import Header, StoredRows
from pipelines.extract.jsonrpc.client import Dialect, RpcClient
from pipelines.extract.jsonrpc.endpoint import other_urls
from pipelines.extract.metering import Meter
from pipelines.extract.units import HURRY_SECONDS, UnreadUnits
from pipelines.rows import Segment


class RpcNode:
    """A network's node behind a client; families add the rest of `pipelines.extract.family.Node`.

    Args:
        network: its definition.
        client: closed with the node.
    """

    dialect: Dialect

    def __init__(self, network: Network, client: RpcClient) -> None:
        self.network = network
        self.client = client
        self.stored: StoredRows | None = None
        self.unread: UnreadUnits | None = None

    @classmethod
    def open(cls, network: Network, *, timeout: tuple[float, float], max_attempts: int, budget: Budget | None) -> Self:
        """Open a node without sending a request; arguments as `pipelines.extract.family.Family.open`."""
        urls, dialect = network.rpc_urls, cls.dialect
        client = RpcClient(network.name, urls, dialect, timeout=timeout, max_attempts=max_attempts, budget=budget)
        return cls(network, client)

    @property
    def seconds(self) -> float:
        """Time of the network in one cycle; infinite without a budget."""
        return math.inf if self.client.budget is None else self.client.budget.seconds

    @property
    def provider(self) -> str:
        """Name of the provider, without keys."""
        return self.client.provider

    @property
    def meter(self) -> Meter:
        """Meter of the client."""
        return self.client.meter

    def other(self) -> Self:
        """Open a node that uses another provider, where one is configured."""
        urls = other_urls(self.network.rpc_urls, self.provider) or self.network.rpc_urls
        client = RpcClient(self.network.name, urls, self.dialect, budget=self.client.budget)
        client.expect_chain(self.network.own.identity)
        return type(self)(self.network, client)

    def hurry(self, is_hurried: bool) -> None:
        """Set whether to give up an answer after `HURRY_SECONDS`."""
        self.client.patience = HURRY_SECONDS if is_hurried else None

    def derived(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield nothing: most families compute nothing from addresses alone."""
        return iter(())

    def unready(self) -> Sequence[str]:
        """Return no wallet: most families need nothing before they collect."""
        return ()

    def unopened(self, segment: Segment) -> Set[str]:
        """Return no address: most families need nothing before they collect."""
        return frozenset()

    def survey(self, wallets: Set[str]) -> Header:
        """Raise: most families read balances at any block."""
        raise AssertionError(f"{self.network.name} has no slow balances, and no survey of {len(wallets)} wallets")

    def close(self) -> None:
        """Close the kept connections."""
        self.client.close()
