"""A node and a world for each test; a node is up in some 30 ms."""

from collections.abc import Iterator

import pytest

from tests.chain.node import AnvilNode
from tests.chain.world import World

GENESIS_TIME = 1_700_000_000


@pytest.fixture
def node() -> Iterator[AnvilNode]:
    with AnvilNode(genesis_time=GENESIS_TIME) as running:
        yield running


@pytest.fixture
def world(node: AnvilNode) -> World:
    return World(node, wallet_count=20)
