"""Capabilities of a node, found by few requests, because every cycle repeats them."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from pipelines.extract.errors import CallRefused, ExtractError, MalformedAnswer, StateUnavailable
from pipelines.extract.evm.blocks import HEADER_CALL
from pipelines.extract.evm.hexadecimal import Data, Quantity
from pipelines.extract.evm.proofs import recomputes
from pipelines.extract.evm.traces import TraceMethod, trace_call
from pipelines.extract.jsonrpc.client import SMALL_ANSWER, Call, RpcClient

_ANY_ADDRESS = "0x" + 40 * "0"
# A provider may answer with these words for a method that the plan does not include.
_TRACES_BYTES = 4 * SMALL_ANSWER
_PLAN_WORDS = ("plan", "tier", "upgrade", "debug", "trace request")


_QUANTITY = msgspec.json.Decoder(Quantity)
_DATA = msgspec.json.Decoder(Data)


@dataclass(frozen=True)
class NodeFacts:
    """Capabilities of a node.

    Attributes:
        chain_id: the configured one.
        has_archive: the state of an early block is readable.
        trace_method: method for reading the calls inside transactions; None where the node has none.
        multicall: address of the Multicall3 that exists at the head; None where there is none.
        recomputes_headers: the head, and the earlier headers that the node has, recompute to their hashes.
    """

    chain_id: int
    has_archive: bool
    trace_method: TraceMethod | None
    multicall: str | None
    recomputes_headers: bool


def probe(client: RpcClient, expected_chain_id: int, multicall_address: str | None) -> NodeFacts:
    """Find a node's capabilities; from then on the client refuses URLs of other chains.

    Raises:
        WrongChain: the node serves another chain.
        NodeUnreachable: it does not answer.
    """
    client.expect_chain(str(expected_chain_id))
    head = int(client.call("eth_blockNumber", [], Quantity, max_response_bytes=SMALL_ANSWER), 16)
    # Nodes without archive keep the genesis state too, so it proves nothing.
    early = min(1, head)
    calls: list[Call] = [("eth_getBalance", [_ANY_ADDRESS, hex(early)]), trace_call("trace_block", early)]
    if multicall_address is not None:
        calls.append(("eth_getCode", [multicall_address, "latest"]))
    balance, traces, *code = client.batch(calls, msgspec.Raw, allow_errors=True, max_response_bytes=_TRACES_BYTES)
    headers = client.batch(_header_calls(head), msgspec.Raw, allow_errors=True)
    trace_method: TraceMethod | None = "trace_block" if _is_served(traces) else None
    if trace_method is None:
        tracing = trace_call("debug_traceBlockByNumber", early)
        if _is_served(client.batch([tracing], msgspec.Raw, allow_errors=True, max_response_bytes=_TRACES_BYTES)[0]):
            trace_method = "debug_traceBlockByNumber"
    multicall = multicall_address if code and _is_code(client, code[0]) else None
    return NodeFacts(expected_chain_id, _is_balance(balance), trace_method, multicall, _recompute(headers))


def _header_calls(head: int) -> list[Call]:
    """Ask for the newest header and four others, spread over the forks of the chain's past."""
    numbers = sorted({min(1, head), *(head * quarter // 4 for quarter in (1, 2, 3, 4))})
    return [(HEADER_CALL, [hex(number), False]) for number in numbers]


def _recompute(answers: Sequence[msgspec.Raw | ExtractError]) -> bool:
    """Return whether the newest header, the last answer, recomputes to its hash, and all others that exist do too."""
    found = [recomputes(answer) for answer in answers]
    return found[-1] is True and False not in found


def _is_served(answer: object) -> bool:
    """Return whether the method exists: it answered, or only lacked the state of so early a block."""
    if isinstance(answer, StateUnavailable):
        return not any(word in answer.words.lower() for word in _PLAN_WORDS)
    return not isinstance(answer, CallRefused)


def _is_balance(answer: msgspec.Raw | ExtractError) -> bool:
    return isinstance(answer, msgspec.Raw) and _is_of(_QUANTITY, answer)


def _is_code(client: RpcClient, answer: msgspec.Raw | ExtractError) -> bool:
    if isinstance(answer, ExtractError):
        raise answer
    if not _is_of(_DATA, answer):
        raise MalformedAnswer(client.network, "eth_getCode", detail="the code of a contract is not hex")
    return bytes(memoryview(answer)[:5]) != b'"0x"'


def _is_of(decoder: msgspec.json.Decoder[str], answer: msgspec.Raw) -> bool:
    try:
        decoder.decode(answer)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
