"""A client that waits for nothing, and remembers how long it would have."""

import random
from collections.abc import Callable, Iterator

import pytest

from pipelines.extract.evm.rpc import RpcClient
from tests.chain.scripted_node import ScriptedNode

MakeClient = Callable[..., RpcClient]


class Naps:
    """Stands in for time: sleeping moves its clock at once."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self.now = 1_000.0

    def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
def make_client(naps: Naps) -> Iterator[MakeClient]:
    random.seed(1)
    clients: list[RpcClient] = []

    def make(*nodes: ScriptedNode | str, **options: object) -> RpcClient:
        urls = [node if isinstance(node, str) else node.url for node in nodes]
        settings: dict[str, object] = {"timeout": (1.0, 0.5), "sleep": naps.sleep, "clock": naps.clock, **options}
        client = RpcClient("testnet", urls, **settings)  # type: ignore[arg-type]
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()
