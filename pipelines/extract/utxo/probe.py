"""Capabilities of a node, found by few requests, because every cycle repeats them."""

from dataclasses import dataclass
from typing import Annotated

import msgspec

from pipelines.extract.errors import CallRefused, StateUnavailable
from pipelines.extract.jsonrpc.client import SMALL_ANSWER, RpcClient
from pipelines.extract.utxo.prevouts import Source

INFO_CALL = "getblockchaininfo"
_Height = Annotated[int, msgspec.Meta(ge=-1, lt=2**31)]
# Behind the headers that it knows by more blocks than this, a node still reads the chain.
_MOST_BEHIND = 100


class _Info(msgspec.Struct):
    blocks: _Height
    headers: _Height


class _Index(msgspec.Struct):
    synced: bool


@dataclass(frozen=True)
class NodeFacts:
    """Capabilities of a node.

    Attributes:
        source: where it gives the outputs that inputs spend; None: nowhere.
    """

    source: Source | None


def probe(client: RpcClient, genesis_hash: str) -> NodeFacts:
    """Find a node's capabilities; from then on the client refuses URLs of other chains.

    Raises:
        WrongChain: the node serves another chain.
        StateUnavailable: the node still reads the chain.
    """
    client.expect_chain(genesis_hash)
    info = client.call(INFO_CALL, [], _Info, max_response_bytes=SMALL_ANSWER)
    if info.headers - info.blocks > _MOST_BEHIND:
        detail = (
            f"the node still reads the chain: it has block {info.blocks} of {info.headers}; new blocks and balances "
            "are read when it is done, and everything stored remains readable"
        )
        raise StateUnavailable(client.network, INFO_CALL, detail=detail)
    try:
        indices = client.call("getindexinfo", ["txindex"], dict[str, _Index], max_response_bytes=SMALL_ANSWER)
    except CallRefused:
        # Nodes without this method have no way to say so, and their index is not used.
        indices = {}
    # The index comes first: its answers are proven.
    if "txindex" in indices and indices["txindex"].synced:
        return NodeFacts(Source.INDEX)
    has_prevouts = "prevout" in client.call("help", ["getblock"], str, max_response_bytes=SMALL_ANSWER)
    return NodeFacts(Source.BLOCK if has_prevouts else None)
