"""What a node is and can do, asked in few requests, since it is asked again in each cycle."""

from dataclasses import dataclass
from typing import Any

from pipelines.extract.errors import CallRefused, MalformedAnswer, StateUnavailable
from pipelines.extract.evm.hexadecimal import Quantity
from pipelines.extract.evm.rpc import Call, RpcClient

_ANY_ADDRESS = "0x" + 40 * "0"
# A provider may answer with these words for a method that the plan does not include.
_PLAN_WORDS = ("plan", "tier", "upgrade", "debug", "trace request")


@dataclass(frozen=True)
class NodeFacts:
    """What a node serves.

    Attributes:
        chain_id: the configured one.
        has_archive: the state of an early block is readable.
        has_traces: calls inside transactions can be read.
        multicall: address of the Multicall3 that exists at the head; None where there is none.
    """

    chain_id: int
    has_archive: bool
    has_traces: bool
    multicall: str | None


def probe(client: RpcClient, expected_chain_id: int, multicall_address: str | None) -> NodeFacts:
    """Ask a node what it is and can do; from then on the client refuses URLs of other chains.

    Raises:
        WrongChain: the node serves another chain.
        NodeUnreachable: it does not answer.
    """
    client.expect_chain(expected_chain_id)
    head = int(client.call("eth_blockNumber", [], Quantity), 16)
    # Nodes without archive keep the genesis state all the same.
    early = hex(min(1, head))
    calls: list[Call] = [("eth_getBalance", [_ANY_ADDRESS, early]), ("trace_block", [early])]
    if multicall_address is not None:
        calls.append(("eth_getCode", [multicall_address, "latest"]))
    balance, traces, *code = client.batch(calls, Any, allow_errors=True)
    has_traces = _is_served(traces)
    if not has_traces:
        tracing: Call = ("debug_traceBlockByNumber", [early, {"tracer": "callTracer"}])
        has_traces = _is_served(client.batch([tracing], Any, allow_errors=True)[0])
    multicall = multicall_address if code and _is_code(client, code[0]) else None
    return NodeFacts(expected_chain_id, isinstance(balance, str), has_traces, multicall)


def _is_served(answer: object) -> bool:
    """Whether the method exists: it answered, or it lacked only the state of so early a block."""
    if isinstance(answer, StateUnavailable):
        return not any(word in answer.detail.lower() for word in _PLAN_WORDS)
    return not isinstance(answer, CallRefused)


def _is_code(client: RpcClient, answer: object) -> bool:
    if isinstance(answer, CallRefused | StateUnavailable):
        raise answer
    if not isinstance(answer, str):
        raise MalformedAnswer(client.network, "eth_getCode", detail="the code of a contract is not text")
    return answer != "0x"
