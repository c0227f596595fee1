"""Balances, supplies, metadata and probing with a scripted node: refusals of providers, incomplete contracts."""

from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import pytest
from eth_abi import decode as abi_decode
from eth_abi import encode as abi_encode
from hypothesis import given
from hypothesis import strategies as st

from pipelines.extract.errors import (
    CallRefused,
    ChainReorganised,
    ExtractError,
    MalformedAnswer,
    NodeUnreachable,
    StateUnavailable,
    WrongChain,
)
from pipelines.extract.evm.balances import read_balances, read_supplies
from pipelines.extract.evm.metadata import read_contracts
from pipelines.extract.evm.probe import NodeFacts, probe
from pipelines.extract.evm.state import Read, decode_aggregate3, encode_aggregate3
from pipelines.extract.units import Unit
from tests.chain.http_server import Reply
from tests.chain.late_answers import LATE
from tests.chain.scripted_node import NodeError, ScriptedNode, block_hash, word
from tests.unit.extract.conftest import MakeClient

MULTICALL = "0xca11bde05977b3631167028862be2a173976ca11"
TOKEN, BROKEN, ABSENT = "0x" + "aa" * 20, "0x" + "bb" * 20, "0x" + "cc" * 20
HOLDER = "0x" + "01" * 20
NUMBER = 50
HASH = block_hash(NUMBER)
ADDRESS = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
CALLDATA = st.binary(max_size=100).map(lambda raw: "0x" + raw.hex())


@given(st.lists(st.tuples(ADDRESS, CALLDATA), max_size=20))
def test_aggregate3_is_encoded_by_the_abi(calls: list[tuple[str, str]]) -> None:
    encoded = encode_aggregate3([Read(*call) for call in calls], MULTICALL)
    expected = abi_encode(
        ["(address,bool,bytes)[]"], [[(target, True, bytes.fromhex(data[2:])) for target, data in calls]]
    )
    assert encoded == "0x82ad56cb" + expected.hex()


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=100)), max_size=20))
def test_aggregate3_is_decoded_by_the_abi(results: list[tuple[bool, bytes]]) -> None:
    returned = "0x" + abi_encode(["(bool,bytes)[]"], [results]).hex()
    expected = ["0x" + data.hex() if is_success else None for is_success, data in results]
    assert decode_aggregate3(returned, len(results)) == expected
    assert decode_aggregate3(returned, len(results) + 1) is None


@given(st.binary(max_size=400), st.integers(1, 3))
def test_any_other_result_is_refused_as_aggregate(returned: bytes, count: int) -> None:
    decoded = decode_aggregate3("0x" + returned.hex(), count)
    assert decoded is None or len(decoded) == count


class State:
    """eth_call and eth_getBalance of a scripted chain, by (contract, calldata); None reverts."""

    def __init__(self, answers: dict[tuple[str, str], str | None], *, has_multicall: bool = True) -> None:
        self.answers = answers
        self.has_multicall = has_multicall
        self.blocks: list[Any] = []
        self.refusal: NodeError | None = None
        self.burns_gas = False

    def install(self, node: ScriptedNode) -> None:
        node.handlers["eth_call"] = self.call
        node.handlers["eth_getBalance"] = self.balance
        node.handlers["eth_getCode"] = self.code

    def code(self, params: Sequence[Any]) -> str:
        if self.refusal and isinstance(params[1], dict):
            raise self.refusal
        return "0x" if params[0] == ABSENT else "0x60"

    def _note(self, block: Any) -> None:
        if self.refusal and isinstance(block, dict):
            raise self.refusal
        self.blocks.append(block)

    def call(self, params: Sequence[Any]) -> str:
        call, block = params
        self._note(block)
        if call["to"] == MULTICALL:
            return self._aggregate(call["data"])
        answer = self.answers.get((call["to"], call["data"]), "0x")
        if answer is None:
            raise NodeError(3, "execution reverted: rate limit")
        return answer

    def balance(self, params: Sequence[Any]) -> str:
        address, block = params
        self._note(block)
        return hex(int(address, 16) % 1_000)

    def _aggregate(self, data: str) -> str:
        if not self.has_multicall:
            return "0x"
        ((*calls,),) = abi_decode(["(address,bool,bytes)[]"], bytes.fromhex(data[10:]))
        if self.burns_gas and len(calls) > 2:
            raise NodeError(-32000, "out of gas")
        results = []
        for target, _, calldata in calls:
            if target == MULTICALL:
                results.append((True, (int.from_bytes(calldata[-20:]) % 1_000).to_bytes(32)))
                continue
            answer = self.answers.get((target, "0x" + calldata.hex()), "0x")
            is_spoilt = self.burns_gas and len(results) > 0
            results.append((False, b"") if answer is None or is_spoilt else (True, bytes.fromhex(answer[2:])))
        return "0x" + abi_encode(["(bool,bytes)[]"], [results]).hex()


# A node that accepts only numbers, and one that has the block's header but denies having the block.
NO_HASHES = NodeError(-32602, "invalid argument 1: json: cannot unmarshal object into Go value of type string")
NO_HEADER = NodeError(-32000, "header not found")


def balance_of(holder: str) -> str:
    return "0x70a08231" + "0" * 24 + holder[2:]


HOLDERS = [f"0x{number:040x}" for number in range(1, 1_203)]
PAIRS = [(TOKEN, holder) for holder in HOLDERS[:3]]


def balances_state(**options: Any) -> State:
    answers: dict[tuple[str, str], str | None] = {
        (TOKEN, balance_of(holder)): "0x" + word(2**256 - int(holder, 16)) for holder in HOLDERS
    }
    answers[BROKEN, balance_of(HOLDER)] = None
    answers[TOKEN, balance_of(HOLDER)] = "0x" + word(1) + word(2)
    return State(answers, **options)


@pytest.mark.parametrize(
    ("holders", "multicall", "has_multicall", "refusal", "burns_gas"),
    [
        (HOLDERS, MULTICALL, True, None, False),
        (HOLDERS[:9], MULTICALL, True, NO_HASHES, False),
        (HOLDERS[:9], MULTICALL, True, None, True),
        (HOLDERS[:9], MULTICALL, True, NO_HEADER, True),
        (HOLDERS[:9], MULTICALL, False, None, False),
        (HOLDERS[:9], MULTICALL, False, NO_HASHES, False),
        (HOLDERS, None, False, None, False),
        (HOLDERS[:9], None, False, NO_HEADER, False),
    ],
)
def test_every_method_returns_the_same_balances(
    make_client: MakeClient,
    holders: list[str],
    multicall: str | None,
    has_multicall: bool,
    refusal: NodeError | None,
    burns_gas: bool,
) -> None:
    pairs = [(TOKEN, holder) for holder in holders] + [("native", holder) for holder in holders[:3]]
    pairs += [(BROKEN, HOLDER), (ABSENT, HOLDER), (TOKEN, HOLDER)]
    expected = [str(2**256 - int(holder, 16)) for holder in holders] + ["1", "2", "3", None, "0", None]
    state = balances_state(has_multicall=has_multicall)
    state.refusal, state.burns_gas = refusal, burns_gas
    with ScriptedNode() as node:
        state.install(node)
        frame = read_balances(make_client(node), pairs, HASH, NUMBER, multicall)
        assert frame["quantity_raw"].to_list() == expected
        assert frame.select("token_address", "holder_address").rows() == pairs
        assert frame.select("block_number", "block_hash").unique().rows() == [(NUMBER, HASH)]
        assert all(block == (hex(NUMBER) if refusal else {"blockHash": HASH}) for block in state.blocks)
        if holders is HOLDERS and multicall:
            assert node.requests == 5


def test_supplies(make_client: MakeClient) -> None:
    state = State({(TOKEN, "0x18160ddd"): "0x" + "f" * 64, (BROKEN, "0x18160ddd"): None})
    with ScriptedNode() as node:
        state.install(node)
        frame = read_supplies(make_client(node), [TOKEN, BROKEN, ABSENT], HASH, NUMBER, MULTICALL)
        assert frame["total_supply_raw"].to_list() == [str(2**256 - 1), None, "0"]
        assert read_supplies(make_client(node), [], HASH, NUMBER, MULTICALL).height == 0


def test_contract_without_a_result_has_no_known_balance(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        State({}).install(node)
        pairs = [(TOKEN, HOLDER), (ABSENT, HOLDER), (ABSENT, TOKEN), (TOKEN, TOKEN)]
        frame = read_balances(make_client(node), pairs, HASH, NUMBER, MULTICALL)
        assert frame["quantity_raw"].to_list() == [None, "0", "0", None]
        assert sorted(params[0] for method, params in node.calls if method == "eth_getCode") == [TOKEN, ABSENT]
        assert [params[1] for method, params in node.calls if method == "eth_getCode"] == [{"blockHash": HASH}] * 2


@pytest.mark.parametrize("multicall", [MULTICALL, None])
def test_pruned_state_is_distinguished_from_an_orphaned_block(make_client: MakeClient, multicall: str | None) -> None:
    def pruned(_: list[Any]) -> str:
        raise NodeError(-32000, "missing trie node 12ab (path )")

    with ScriptedNode() as node:
        node.handlers["eth_call"] = pruned
        with pytest.raises(StateUnavailable, match=r"lacks the state or history of the block \(code -32000\)"):
            read_balances(make_client(node), PAIRS, HASH, NUMBER, multicall)
        with pytest.raises(ChainReorganised) as caught:
            read_balances(make_client(node), PAIRS, block_hash(NUMBER, fork=1), NUMBER, multicall)
        assert caught.value.block_number == NUMBER


@pytest.mark.parametrize("refusal", [NO_HASHES, NO_HEADER])
def test_reading_by_number_detects_a_reorganisation(make_client: MakeClient, refusal: NodeError) -> None:
    state = balances_state()
    state.refusal = refusal
    with ScriptedNode() as node:
        state.install(node)
        truly = node.handlers["eth_getBlockByNumber"]
        forks = iter([0, 1])
        node.handlers["eth_getBlockByNumber"] = lambda params: truly(params) | {"hash": block_hash(NUMBER, next(forks))}
        with pytest.raises(ChainReorganised):
            read_balances(make_client(node), PAIRS, HASH, NUMBER, MULTICALL)


def test_refusal_by_the_node_is_not_taken_for_a_revert(make_client: MakeClient) -> None:
    with ScriptedNode() as node, pytest.raises(CallRefused, match="code -32601"):
        read_balances(make_client(node), PAIRS, HASH, NUMBER, None)


@pytest.mark.parametrize("answer", ["0x0g", "12", "0x123", ""])
def test_result_that_is_not_hex_is_malformed(make_client: MakeClient, answer: str) -> None:
    with ScriptedNode() as node:
        node.handlers["eth_call"] = lambda _: answer
        with pytest.raises(MalformedAnswer):
            read_balances(make_client(node), PAIRS[:2], HASH, NUMBER, None)


# Units at fault


class Failures:
    """The units that reads noted, each with the class of its error and whether it is proven."""

    def __init__(self, *left_out: Unit) -> None:
        self.noted: dict[Unit, tuple[type[ExtractError], bool]] = {}
        self._left_out = left_out

    def left_out(self, *units: Unit) -> ExtractError | None:
        return next((CallRefused("testnet", "eth_call") for unit in units if unit in self._left_out), None)

    def failed(self, unit: Unit, error: ExtractError, *, is_proven: bool) -> None:
        self.noted[unit] = (type(error), is_proven)


HALT = NodeError(-32603, "Internal error")
OVERRUN = NodeError(-32000, "execution aborted (timeout = 5s)")
PRUNED = NodeError(-32000, "missing trie node 12ab (path )")


def spoil(node: ScriptedNode, is_spoilt: Callable[[str, str], bool], answer: Any) -> None:
    """Let calls of contracts, and Multicalls that contain one, fail with an error or another answer."""
    truly = node.handlers["eth_call"]

    def call(params: list[Any]) -> Any:
        (to, data), answered = (params[0]["to"], params[0]["data"]), truly(params)
        inner = [(to, data)]
        if to == MULTICALL:
            ((*reads,),) = abi_decode(["(address,bool,bytes)[]"], bytes.fromhex(data[10:]))
            inner = [(target, "0x" + calldata.hex()) for target, _, calldata in reads]
        if not any(is_spoilt(*one) for one in inner):
            return answered
        if isinstance(answer, NodeError):
            raise answer
        return answer

    node.handlers["eth_call"] = call


SPOILT = {
    "a halt": (HALT, CallRefused),
    "an overrun": (OVERRUN, CallRefused),
    "a state that is missing for it alone": (PRUNED, StateUnavailable),
    "null": (None, MalformedAnswer),
    "a number": (7, MalformedAnswer),
    "no hex": ("0x0g", MalformedAnswer),
}


@pytest.mark.parametrize("case", SPOILT)
@pytest.mark.parametrize("multicall", [MULTICALL, None])
def test_contract_that_fails_alone_hides_no_other_balance(
    make_client: MakeClient, case: str, multicall: str | None
) -> None:
    answer, kind = SPOILT[case]
    failures, strange = Failures(), "0x" + "ba" * 20
    with ScriptedNode() as node:
        balances_state().install(node)
        spoil(node, lambda contract, _: contract == strange, answer)
        pairs = [*PAIRS, (strange, HOLDER), (strange, HOLDERS[4])]
        frame = read_balances(make_client(node), pairs, HASH, NUMBER, multicall, failures)
    assert frame.select("token_address", "holder_address").rows() == PAIRS
    assert frame["quantity_raw"].to_list() == [str(2**256 - number) for number in (1, 2, 3)]
    assert failures.noted == {Unit("contract", strange): (kind, True)}


def test_balance_that_fails_alone_is_the_fault_of_one_call(make_client: MakeClient) -> None:
    failures = Failures()
    with ScriptedNode() as node:
        balances_state().install(node)
        spoil(node, lambda _, calldata: calldata == balance_of(HOLDERS[1]), HALT)
        frame = read_balances(make_client(node), PAIRS, HASH, NUMBER, MULTICALL, failures)
        alone = read_balances(make_client(node), PAIRS[1:2], HASH, NUMBER, MULTICALL, failures)
    assert frame.select("token_address", "holder_address").rows() == [PAIRS[0], PAIRS[2]]
    assert alone.is_empty()
    assert failures.noted == {Unit("call", TOKEN, balance_of(HOLDERS[1])): (CallRefused, True)}


@pytest.mark.parametrize("fault", [LATE, Reply(status=500), Reply(b"{}", cut_after=0)])
def test_failure_that_may_pass_is_not_proven_in_the_same_cycle(make_client: MakeClient, fault: Reply) -> None:
    failures = Failures()
    with ScriptedNode() as node:
        balances_state().install(node)
        answer = node.answer

        def spoilt(body: bytes) -> Reply:
            return fault if balance_of(HOLDERS[1])[2:].encode() in body else answer(body)

        with patch.object(node, "answer", spoilt):
            frame = read_balances(make_client(node, max_attempts=2), PAIRS, HASH, NUMBER, None, failures)
    assert frame.select("token_address", "holder_address").rows() == [PAIRS[0], PAIRS[2]]
    assert failures.noted == {Unit("call", TOKEN, balance_of(HOLDERS[1])): (NodeUnreachable, False)}


def test_call_that_works_the_second_time_is_not_at_fault(make_client: MakeClient) -> None:
    failures, tries = Failures(), iter([True, False])
    with ScriptedNode() as node:
        balances_state().install(node)
        spoil(node, lambda _, calldata: calldata == balance_of(HOLDERS[1]) and next(tries), HALT)
        frame = read_balances(make_client(node), PAIRS, HASH, NUMBER, None, failures)
    assert frame.select("token_address", "holder_address").rows() == PAIRS
    assert not failures.noted


def test_unit_that_is_left_out_is_not_asked_for(make_client: MakeClient) -> None:
    failures = Failures(Unit("contract", BROKEN), Unit("call", TOKEN, balance_of(HOLDERS[1])))
    with ScriptedNode() as node:
        balances_state().install(node)
        pairs = [*PAIRS, (BROKEN, HOLDER)]
        frame = read_balances(make_client(node), pairs, HASH, NUMBER, None, failures)
        asked = [(params[0]["to"], params[0]["data"]) for method, params in node.calls if method == "eth_call"]
    assert frame.select("token_address", "holder_address").rows() == [PAIRS[0], PAIRS[2]]
    assert asked == [(TOKEN, balance_of(HOLDERS[0])), (TOKEN, balance_of(HOLDERS[2]))]


@pytest.mark.parametrize(("answer", "kind"), [(HALT, CallRefused), ("many", MalformedAnswer)])
def test_wallet_whose_balance_fails_hides_no_other(
    make_client: MakeClient, answer: Any, kind: type[ExtractError]
) -> None:
    failures = Failures()
    with ScriptedNode() as node:
        balances_state().install(node)
        truly = node.handlers["eth_getBalance"]

        def balance(params: list[Any]) -> Any:
            if params[0] != HOLDERS[1]:
                return truly(params)
            if isinstance(answer, NodeError):
                raise answer
            return answer

        node.handlers["eth_getBalance"] = balance
        pairs = [("native", holder) for holder in HOLDERS[:3]]
        frame = read_balances(make_client(node), pairs, HASH, NUMBER, None, failures)
    assert frame["quantity_raw"].to_list() == ["1", "3"]
    assert failures.noted == {Unit("wallet", HOLDERS[1]): (kind, True)}


# Metadata


def string(text: bytes) -> str:
    return "0x" + abi_encode(["bytes"], [text]).hex()


def supports(identifier: str) -> str:
    return f"0x01ffc9a7{identifier:0<64}"


SYMBOL, NAME, DECIMALS, SUPPLY = "0x95d89b41", "0x06fdde03", "0x313ce567", "0x18160ddd"
BALANCE = "0x70a08231" + word(1)
ERC20 = {
    SYMBOL: string(b"TST"),
    NAME: string(b"Test"),
    DECIMALS: "0x" + word(18),
    SUPPLY: "0x" + word(10**24),
    BALANCE: "0x" + word(0),
}
REVERTS = dict.fromkeys(ERC20)


def erc165(*identifiers: str, affirms_all: bool = False) -> dict[str, str | None]:
    known = {supports(name): "0x" + word(int(affirms_all)) for name in ("01ffc9a7", "ffffffff", "80ac58cd", "d9b67a26")}
    return known | {supports(name): "0x" + word(1) for name in ("01ffc9a7", *identifiers)}


METADATA: dict[str, tuple[dict[str, str | None], tuple[Any, ...]]] = {
    "plain": ({}, ("Fungible", "ERC-20", "TST", "Test", 18, 10**24, None)),
    "bytes32": (
        {SYMBOL: "0x" + b"MKR".hex().ljust(64, "0"), NAME: "0x" + b"Maker".hex().ljust(64, "0")},
        ("Fungible", "ERC-20", "MKR", "Maker", 18, 10**24, None),
    ),
    "bytes32 full": (
        {SYMBOL: "0x" + (b"x" * 32).hex()},
        ("Fungible", "ERC-20", "x" * 32, "Test", 18, 10**24, None),
    ),
    "no decimals": (
        {DECIMALS: None},
        ("Fungible", "ERC-20", "TST", "Test", None, 10**24, "decimals() reverts."),
    ),
    "silent decimals": (
        {DECIMALS: "0x"},
        ("Fungible", "ERC-20", "TST", "Test", None, 10**24, "decimals() returns nothing."),
    ),
    "wide decimals": (
        {DECIMALS: "0x" + word(256)},
        ("Fungible", "ERC-20", "TST", "Test", None, 10**24, "decimals() returns more than 255."),
    ),
    "largest decimals": ({DECIMALS: "0x" + word(255)}, ("Fungible", "ERC-20", "TST", "Test", 255, 10**24, None)),
    "not UTF-8": (
        {SYMBOL: string(b"\xff\xfe"), NAME: None},
        (
            "Fungible",
            "ERC-20",
            None,
            None,
            18,
            10**24,
            "symbol() returns bytes that are not UTF-8, name() reverts.",
        ),
    ),
    "NUL": (
        {SYMBOL: string(b"\0T\0S\0"), NAME: string(b"\0\0")},
        ("Fungible", "ERC-20", "TS", None, 18, 10**24, "name() returns an empty text."),
    ),
    "long": (
        {SYMBOL: string("€".encode() * 65)},
        ("Fungible", "ERC-20", "€" * 64, "Test", 18, 10**24, "symbol() is longer than 64 characters and is cut."),
    ),
    "lying lengths": (
        {SYMBOL: "0x" + word(0x20) + word(2**255), NAME: "0x" + word(2**200) + word(3)},
        ("Fungible", "ERC-20", None, None, 18, 10**24, "symbol() returns no text, name() returns no text."),
    ),
    "largest supply": ({SUPPLY: "0x" + "f" * 64}, ("Fungible", "ERC-20", "TST", "Test", 18, 2**256 - 1, None)),
    "ERC-721": (
        erc165("80ac58cd"),
        ("NotFungible", "ERC-721", "TST", "Test", None, None, "This is a contract of non-fungible tokens (ERC-721)."),
    ),
    "ERC-1155": (
        REVERTS | erc165("d9b67a26"),
        ("NotFungible", "ERC-1155", None, None, None, None, "This is a contract of non-fungible tokens (ERC-1155)."),
    ),
    "affirms everything": (
        erc165("80ac58cd", affirms_all=True),
        ("Fungible", "ERC-20", "TST", "Test", 18, 10**24, None),
    ),
    "no token": (
        REVERTS,
        (
            "Unknown",
            None,
            None,
            None,
            None,
            None,
            "totalSupply() reverts, balanceOf() reverts, symbol() reverts, name() reverts, decimals() reverts.",
        ),
    ),
    "no supply": (
        {SUPPLY: "0x" + word(1) * 2},
        ("Unknown", None, "TST", "Test", 18, None, "totalSupply() does not return a single word."),
    ),
}


# Other cases of block and method: test_every_method_returns_the_same_balances.
@pytest.mark.parametrize("case", METADATA)
@pytest.mark.parametrize(("multicall", "block"), [(MULTICALL, HASH), (None, NUMBER)], ids=["multicall", "single"])
def test_contracts_are_described(make_client: MakeClient, case: str, multicall: str | None, block: str | int) -> None:
    changes, expected = METADATA[case]
    state = State({(TOKEN, calldata): answer for calldata, answer in (ERC20 | changes).items()})
    with ScriptedNode() as node:
        state.install(node)
        absent, token = read_contracts(make_client(node), [ABSENT, TOKEN], block, multicall)
    assert (absent.address, absent.contract_status) == (ABSENT, "NoContract")
    assert absent.detail == "There is no contract at this address."
    assert (
        token.contract_status,
        token.standard,
        token.symbol,
        token.name,
        token.decimals,
        token.total_supply,
        token.detail,
    ) == expected


def test_contract_that_cannot_be_read_is_unknown_with_the_reason(make_client: MakeClient) -> None:
    failures = Failures()
    with ScriptedNode() as node:
        State({(TOKEN, calldata): answer for calldata, answer in ERC20.items()}).install(node)
        spoil(node, lambda contract, _: contract == BROKEN, HALT)
        token, broken = read_contracts(make_client(node), [TOKEN, BROKEN], HASH, MULTICALL, failures)
    assert (token.contract_status, token.detail) == ("Fungible", None)
    assert (broken.contract_status, broken.standard, broken.total_supply) == ("Unknown", None, None)
    assert broken.detail is not None
    assert "the node refuses the call (code -32603)" in broken.detail
    assert list(failures.noted) == [Unit("contract", BROKEN)]


def test_function_that_halts_in_any_words_is_one_that_the_contract_does_not_have(make_client: MakeClient) -> None:
    failures = Failures()
    with ScriptedNode() as node:
        State({(TOKEN, calldata): answer for calldata, answer in ERC20.items()}).install(node)
        spoil(node, lambda _, calldata: calldata.startswith("0x01ffc9a7") or calldata == NAME, HALT)
        (token,) = read_contracts(make_client(node), [TOKEN], HASH, MULTICALL, failures)
    assert (token.contract_status, token.symbol, token.name) == ("Fungible", "TST", None)
    assert token.detail == "name() reverts."
    assert not failures.noted


def test_lost_call_gives_no_metadata(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        State({}).install(node)
        del node.handlers["eth_call"]
        with pytest.raises(CallRefused):
            read_contracts(make_client(node), [TOKEN], HASH)


def test_contracts_are_described_by_a_node_that_accepts_only_numbers(make_client: MakeClient) -> None:
    state = State({(TOKEN, calldata): answer for calldata, answer in ERC20.items()})
    state.refusal = NO_HASHES
    with ScriptedNode() as node:
        state.install(node)
        node.handlers["eth_getCode"] = lambda params: state._note(params[1]) or "0x60"  # type: ignore[func-returns-value]
        truly = node.handlers["eth_getBlockByNumber"]
        node.handlers["eth_getBlockByHash"] = lambda params: truly([hex(NUMBER), False])
        (token,) = read_contracts(make_client(node), [TOKEN], HASH)
        assert token.symbol == "TST"


# Probe


def refuse(code: int, message: str) -> Callable[[list[Any]], Any]:
    def handler(_: list[Any]) -> Any:
        raise NodeError(code, message)

    return handler


def full_node(**handlers: Callable[[list[Any]], Any]) -> ScriptedNode:
    node = ScriptedNode(chain_id=10)
    State({}).install(node)
    node.handlers |= {"trace_block": lambda _: [], "debug_traceBlockByNumber": lambda _: []} | handlers
    return node


def test_probe_of_a_full_node(make_client: MakeClient) -> None:
    with full_node() as node:
        assert probe(make_client(node), 10, MULTICALL) == NodeFacts(10, True, "trace_block", MULTICALL, False)
        assert node.requests == 4


@pytest.mark.parametrize(
    ("handlers", "facts"),
    [
        (
            {"eth_getBalance": refuse(-32000, "missing trie node")},
            NodeFacts(10, False, "trace_block", MULTICALL, False),
        ),
        (
            {"trace_block": refuse(-32601, "method not found")},
            NodeFacts(10, True, "debug_traceBlockByNumber", MULTICALL, False),
        ),
        (
            {
                "trace_block": refuse(-32601, "method not found"),
                "debug_traceBlockByNumber": refuse(-32601, "method not found"),
            },
            NodeFacts(10, True, None, MULTICALL, False),
        ),
        (
            {
                "trace_block": refuse(-32601, "method not found"),
                "debug_traceBlockByNumber": refuse(-32000, "required historical state unavailable (reexec=128)"),
            },
            NodeFacts(10, True, "debug_traceBlockByNumber", MULTICALL, False),
        ),
        (
            {
                "trace_block": refuse(-32000, "Archive, Debug and Trace requests are not on your current plan"),
                "debug_traceBlockByNumber": refuse(-32000, "trace requests need an archive plan"),
            },
            NodeFacts(10, True, None, MULTICALL, False),
        ),
        ({"eth_getCode": lambda _: "0x"}, NodeFacts(10, True, "trace_block", None, False)),
    ],
)
def test_probe_names_missing_abilities(
    make_client: MakeClient, handlers: dict[str, Callable[[list[Any]], Any]], facts: NodeFacts
) -> None:
    with full_node(**handlers) as node:
        assert probe(make_client(node), 10, MULTICALL) == facts
        assert probe(make_client(node), 10, None).multicall is None


def test_another_chain_is_refused(make_client: MakeClient) -> None:
    with full_node() as node, pytest.raises(WrongChain, match="serves chain 10, not 1"):
        probe(make_client(node), 1, MULTICALL)
