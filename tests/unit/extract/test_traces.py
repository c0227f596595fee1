"""Internal transfers from scripted traces: both formats, failed calls, and faulty nodes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.extract.errors import ChainReorganised, ExtractError, MalformedAnswer, StateUnavailable
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.traces import INTERNAL_TRANSFER_SCHEMA, TraceMethod, read_internal_transfers
from pipelines.extract.jsonrpc.client import RpcClient
from tests.chain.scripted_node import NodeError, ScriptedNode, block_hash
from tests.unit.extract.conftest import MakeClient

METHODS: tuple[TraceMethod, ...] = ("trace_block", "debug_traceBlockByNumber")
A, B, C, D = ("0x" + letter * 40 for letter in "abcd")
ZERO = "0x" + "0" * 40


@dataclass
class Tree:
    """A call with its inner calls; it computes the expected transfers independently."""

    type: str = "CALL"
    sender: str = A
    to: str = B
    value: int = 0
    error: str | None = None
    calls: list["Tree"] = field(default_factory=list)

    def nested(self) -> dict[str, Any]:
        """Return the call in the format of callTracer."""
        frame: dict[str, Any] = {"type": self.type, "from": self.sender, "gas": "0x1", "input": "0x00"}
        if self.error is None or not self.type.startswith("CREATE"):
            frame["to"] = self.to
        if self.type != "STATICCALL":
            frame["value"] = hex(self.value)
        if self.error is not None:
            frame["error"] = self.error
        if self.calls:
            frame["calls"] = [call.nested() for call in self.calls]
        return frame

    def flat(self, address: tuple[int, ...] = ()) -> Iterator[dict[str, Any]]:
        """Return the calls in the format of trace_block, without block and transaction."""
        result: dict[str, Any] | None = {"gasUsed": "0x0", "output": "0x"}
        if self.type == "SELFDESTRUCT":
            type_, result = "suicide", None
            action = {"address": self.sender, "refundAddress": self.to, "balance": hex(self.value)}
        elif self.type.startswith("CREATE"):
            type_, result = "create", {"address": self.to, "code": "0x", "gasUsed": "0x0"}
            action = {"from": self.sender, "value": hex(self.value), "gas": "0x1", "init": "0x"}
        else:
            type_ = "call"
            action = {"from": self.sender, "to": self.to, "value": hex(self.value), "callType": self.type.lower()}
        yield {
            "type": type_,
            "action": action,
            "traceAddress": list(address),
            "subtraces": len(self.calls),
            **({"result": result} if self.error is None else {"error": self.error, "result": None}),
        }
        for position, call in enumerate(self.calls):
            yield from call.flat((*address, position))

    def moves(self, *, is_inside: bool = False) -> list[tuple[str, str, str, str]]:
        """Return the transfers of the call, computed from the tree."""
        if self.error is not None:
            return []
        kinds = {"CALL": "call", "CREATE": "create", "CREATE2": "create", "SELFDESTRUCT": "selfdestruct"}
        is_move = is_inside and self.type in kinds and self.value > 0 and self.sender != self.to
        own = [(self.sender, self.to, str(self.value), kinds[self.type])] if is_move else []
        return own + [move for call in self.calls for move in call.moves(is_inside=True)]


def transaction_hash(block: int, index: int) -> str:
    return f"0x{block:032x}{index:032x}"


def traced(blocks: dict[int, list[Tree]], head: int = 30) -> ScriptedNode:
    """Return a chain with these trees as transactions, traced by both methods."""
    transactions = {
        number: [{"hash": transaction_hash(number, index)} for index in range(len(trees))]
        for number, trees in blocks.items()
    }
    node = ScriptedNode(head=head, transactions=transactions)

    def flat(params: list[Any]) -> Any:
        number = int(params[0], 16)
        return [
            {
                **frame,
                "blockHash": block_hash(number),
                "blockNumber": number,
                "transactionHash": transaction_hash(number, index),
                "transactionPosition": index,
            }
            for index, tree in enumerate(blocks.get(number, []))
            for frame in tree.flat()
        ]

    def nested(params: list[Any]) -> Any:
        number = int(params[0], 16)
        assert params[1] == {"tracer": "callTracer", "timeout": "25s"}
        return [
            {"txHash": transaction_hash(number, index), "result": tree.nested()}
            for index, tree in enumerate(blocks.get(number, []))
        ]

    node.handlers |= {"trace_block": flat, "debug_traceBlockByNumber": nested}
    return node


def change(node: ScriptedNode, method: str, changed: Any) -> None:
    """Replace the response of a method by `changed`, which gets the true response and the parameters."""
    truly = node.handlers[method]
    node.handlers[method] = lambda params: changed(truly(params), params)


def read(client: RpcClient, method: TraceMethod, wallets: set[str], last: int = 30) -> list[dict[str, Any]]:
    """Return the rows; raise the error of the first block that cannot be traced."""
    rows: list[dict[str, Any]] = []
    for frame, failed in read_internal_transfers(client, 1, last, wallets, method):
        assert frame.schema == INTERNAL_TRANSFER_SCHEMA
        for error in failed.values():
            raise error
        assert not frame.is_empty()
        rows += frame.iter_rows(named=True)
    return rows


TYPES = ["CALL", "CALL", "CALL", "CREATE", "CREATE2", "DELEGATECALL", "CALLCODE", "STATICCALL"]
LEAVES = st.builds(
    Tree,
    type=st.sampled_from([*TYPES, "SELFDESTRUCT"]),
    sender=st.sampled_from([A, B, C, D]),
    to=st.sampled_from([A, B, C, D]),
    value=st.sampled_from([0, 1, 5, 2**256 - 1]),
    error=st.sampled_from([None, None, None, "Reverted"]),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        Tree,
        type=st.sampled_from(TYPES),
        sender=st.sampled_from([A, B, C, D]),
        to=st.sampled_from([A, B, C, D]),
        value=st.sampled_from([0, 1, 5]),
        error=st.sampled_from([None, None, None, "out of gas"]),
        calls=st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=20,
)


@pytest.mark.ci
@settings(max_examples=60)
@given(
    blocks=st.dictionaries(st.integers(1, 12), st.lists(TREES, max_size=3), max_size=5),
    wallets=st.sets(st.sampled_from([A, B, C]), min_size=1),
)
def test_both_methods_return_the_transfers_of_the_calls(blocks: dict[int, list[Tree]], wallets: set[str]) -> None:
    expected = [
        (number, block_hash(number), index, transaction_hash(number, index), position, *move)
        for number, trees in sorted(blocks.items())
        for index, tree in enumerate(trees)
        for position, move in enumerate(tree.moves())
        if {*move[:2]} & wallets
    ]
    with traced(blocks, head=12) as node:
        # Some nodes use an order of their own.
        change(node, "trace_block", lambda answer, _: answer[::-1])
        client = RpcClient("testnet", [node.url], EVM)
        for method in METHODS:
            assert [tuple(row.values()) for row in read(client, method, wallets, 12)] == expected
        client.close()


def test_value_of_the_transaction_itself_is_no_internal_transfer(make_client: MakeClient) -> None:
    with traced({3: [Tree(value=5), Tree(type="CREATE", value=6), Tree(value=7, error="Reverted")]}) as node:
        for method in METHODS:
            assert read(make_client(node), method, {A, B}) == []


def test_no_wallets_send_no_request(make_client: MakeClient) -> None:
    with traced({3: [Tree(calls=[Tree(value=1)])]}) as node:
        assert read(make_client(node), "trace_block", set()) == []
        assert node.requests == 0


def test_upper_case_and_rewards_and_other_names_of_self_destruction(make_client: MakeClient) -> None:
    def spoil(answer: list[Any], params: list[Any]) -> list[Any]:
        reward = {
            "type": "reward",
            "action": {"author": D, "rewardType": "block", "value": "0x5"},
            "blockHash": block_hash(int(params[0], 16)),
            "result": None,
            "traceAddress": [],
            "transactionHash": None,
        }
        for trace in answer:
            trace["type"] = "selfdestruct" if trace["type"] == "suicide" else trace["type"]
            trace["transactionHash"] = trace["transactionHash"].upper().replace("0X", "0x")
            trace["action"] = {
                name: value.upper().replace("0X", "0x") if name in ("from", "to", "refundAddress") else value
                for name, value in trace["action"].items()
            }
        return [*answer, reward]

    tree = Tree(calls=[Tree(sender=B, to=C, value=9), Tree(type="SELFDESTRUCT", sender=B, to=A, value=4)])
    with traced({3: [tree]}) as node:
        change(node, "trace_block", spoil)
        rows = read(make_client(node), "trace_block", {A, C, D})
        assert [(row["from_address"], row["to_address"], row["amount_raw"], row["kind"]) for row in rows] == [
            (B, C, "9", "call"),
            (B, A, "4", "selfdestruct"),
        ]


def test_tracer_without_transaction_hashes(make_client: MakeClient) -> None:
    with traced({3: [Tree(), Tree(calls=[Tree(value=8)])]}) as node:
        change(node, "debug_traceBlockByNumber", lambda answer, _: [{"result": trace["result"]} for trace in answer])
        (row,) = read(make_client(node), "debug_traceBlockByNumber", {A})
        assert (row["transaction_index"], row["amount_raw"]) == (1, "8")
        change(node, "debug_traceBlockByNumber", lambda answer, _: answer[:1])
        with pytest.raises(MalformedAnswer, match="1 traces for 2 transactions"):
            read(make_client(node), "debug_traceBlockByNumber", {A})


@pytest.mark.parametrize("method", METHODS)
def test_a_transaction_without_traces_is_an_error(make_client: MakeClient, method: TraceMethod) -> None:
    system = {"from": ZERO, "to": ZERO, "value": "0x0"}
    for sent in (None, system | {"from": A}, system | {"value": "0x1"}):
        with traced({3: [Tree(calls=[Tree(value=8)]), Tree()]}) as node:
            last = transaction_hash(3, 1)
            change(
                node,
                method,
                lambda answer, _, last=last: [
                    trace for trace in answer if last not in (trace.get("txHash"), trace.get("transactionHash"))
                ],
            )
            node.handlers["eth_getTransactionByHash"] = lambda _, sent=sent: sent
            with pytest.raises(MalformedAnswer, match=f"transaction {last} is not traced") as caught:
                read(make_client(node), method, {A})
            assert (caught.value.call, caught.value.from_block) == (method, 3)
            # A system transaction of the chain: it has no signature and moves nothing.
            node.handlers["eth_getTransactionByHash"] = lambda _: system
            assert [row["amount_raw"] for row in read(make_client(node), method, {A})] == ["8"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "answer", [NodeError(-32000, "method handler crashed"), None, [{"error": "execution timeout"}]]
)
def test_block_that_cannot_be_traced_hides_no_other(make_client: MakeClient, method: TraceMethod, answer: Any) -> None:
    def spoilt(truly: Any, params: list[Any]) -> Any:
        if int(params[0], 16) != 6:
            return truly
        if isinstance(answer, NodeError):
            raise answer
        return answer

    with traced({number: [Tree(calls=[Tree(value=number)])] for number in range(5, 9)}) as node:
        change(node, method, spoilt)
        found = list(read_internal_transfers(make_client(node), 1, 12, {A}, method))
    assert [row["amount_raw"] for frame, _ in found for row in frame.iter_rows(named=True)] == ["5", "7", "8"]
    assert [list(failed) for _, failed in found] == [[6]]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("answer", [None, "0x", {}, [{}]])
def test_missing_traces_are_not_taken_for_an_empty_block(
    make_client: MakeClient, method: TraceMethod, answer: Any
) -> None:
    with traced({}) as node:
        node.handlers[method] = lambda _: answer
        with pytest.raises(MalformedAnswer):
            read(make_client(node), method, {A})


@pytest.mark.parametrize("method", METHODS)
def test_block_that_changes_during_tracing_is_a_reorganisation(make_client: MakeClient, method: TraceMethod) -> None:
    with traced({3: [Tree(calls=[Tree(value=8)])]}) as node:
        client = make_client(node, max_in_flight=1)
        truly = node.handlers["eth_getBlockByNumber"]

        def moved(answer: Any, params: list[Any]) -> Any:
            node.handlers["eth_getBlockByNumber"] = lambda params: (
                truly(params) | ({"hash": block_hash(3, fork=1)} if params[0] == "0x3" else {})
            )
            return [trace | {"blockHash": block_hash(3, fork=1)} for trace in answer]

        change(node, method, moved)
        with pytest.raises(ChainReorganised) as caught:
            read(client, method, {A}, last=4)
        assert caught.value.block_number == 3


def test_empty_response_for_a_changed_block_is_a_reorganisation(make_client: MakeClient) -> None:
    with traced({3: [Tree(calls=[Tree(value=8)])]}) as node:
        truly = node.handlers["eth_getBlockByNumber"]

        def moved(params: list[Any]) -> Any:
            node.handlers["eth_getBlockByNumber"] = lambda params: truly(params) | {"hash": block_hash(9, fork=1)}
            return []

        node.handlers["trace_block"] = moved
        with pytest.raises(ChainReorganised):
            list(read_internal_transfers(make_client(node), 3, 3, {A}, "trace_block"))


def test_links_are_checked_across_requests(make_client: MakeClient) -> None:
    with traced({}) as node:
        truly = node.handlers["eth_getBlockByNumber"]
        node.handlers["eth_getBlockByNumber"] = lambda params: (
            truly(params) | ({"parentHash": block_hash(8, fork=1)} if params[0] == "0x9" else {})
        )
        with pytest.raises(ChainReorganised) as caught:
            read(make_client(node), "trace_block", {A})
        assert caught.value.block_number == 8


MALFORMED: dict[str, tuple[TraceMethod, dict[str, Any], str]] = {
    "unknown call": (
        "trace_block",
        {"action": {"from": A, "to": B, "callType": "teleport"}},
        "unknown type$",
    ),
    "unknown type": ("trace_block", {"type": "teleport"}, "unknown type$"),
    "nobody created": ("trace_block", {"type": "create", "result": {}}, "no receiver"),
    "no sender": ("trace_block", {"action": {"to": B, "value": "0x1"}}, "no sender"),
    "another transaction": ("trace_block", {"transactionHash": "0x" + "9" * 64}, "missing or duplicated"),
    "twice": ("trace_block", {"traceAddress": []}, "missing or duplicated"),
    "no number": ("trace_block", {"action": {"from": A, "to": B, "value": "5"}}, "regex"),
    "no address": ("trace_block", {"action": {"from": A[:-1], "to": B, "value": "0x5"}}, "regex"),
    "another block": ("trace_block", {"blockHash": "0x" + "9" * 64}, "another block"),
    "foreign": ("debug_traceBlockByNumber", {"txHash": "0x" + "9" * 64}, "is not in the block"),
    "too deep": ("trace_block", {"traceAddress": [1] * 9_000}, "too long"),
    "failed tracing": ("debug_traceBlockByNumber", {"result": None, "error": "execution timeout"}, "is not traced$"),
    "another tracer": ("debug_traceBlockByNumber", {"result": {}}, "missing required field"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_traces_are_refused(make_client: MakeClient, case: str) -> None:
    method, spoilt, message = MALFORMED[case]
    with traced({3: [Tree(calls=[Tree(value=8)])]}) as node:
        change(node, method, lambda answer, _: [*answer[:-1], answer[-1] | spoilt] if answer else answer)
        with pytest.raises(MalformedAnswer, match=message):
            read(make_client(node), method, {A, B})


def test_missing_abilities_of_the_node_are_reported(make_client: MakeClient) -> None:
    def pruned(_: list[Any]) -> Any:
        raise NodeError(-32000, "required historical state unavailable (reexec=128)")

    with traced({}) as node:
        node.handlers["debug_traceBlockByNumber"] = pruned
        with pytest.raises(StateUnavailable) as caught:
            read(make_client(node), "debug_traceBlockByNumber", {A})
        assert (caught.value.from_block, caught.value.to_block) == (1, 1)
        del node.handlers["trace_block"]
        with pytest.raises(ExtractError, match="code -32601"):
            read(make_client(node), "trace_block", {A})
