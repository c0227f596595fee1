"""A client that does not wait, and records the times it would have waited."""

import random
from collections.abc import Callable, Iterator

import pytest

from pipelines.extract.evm.dialect import EVM
from pipelines.extract.jsonrpc.client import RpcClient
from tests.chain.late_answers import late_answers_time_out
from tests.chain.scripted_node import ScriptedNode
from tests.waiting import Naps

MakeClient = Callable[..., RpcClient]


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
def make_client(naps: Naps) -> Iterator[MakeClient]:
    random.seed(1)
    clients: list[RpcClient] = []

    def make(*nodes: ScriptedNode | str, **options: object) -> RpcClient:
        urls = [node if isinstance(node, str) else node.url for node in nodes]
        settings: dict[str, object] = {"timeout": (60.0, 60.0), "sleep": naps.sleep, "clock": naps.clock, **options}
        client = RpcClient("testnet", urls, EVM, **settings)  # type: ignore[arg-type]
        clients.append(client)
        return client

    with late_answers_time_out():
        yield make
    for client in clients:
        client.close()
