"""Classification of providers' errors: messages quoted in documentation and issue trackers."""

import json
import random

import pytest

from pipelines.extract.evm.faults import FaultKind, classify

RATE, RANGE, STATE = FaultKind.RATE_LIMITED, FaultKind.RANGE_REFUSED, FaultKind.STATE_UNAVAILABLE
REFUSED, TRANSIENT = FaultKind.REFUSED, FaultKind.TRANSIENT

LOGS = [
    # Infura
    (200, -32005, "query returned more than 10000 results. Try with this block range [0x10, 0x20].", RANGE, (16, 32)),
    (200, -32005, "query returned more than 10000 results", RANGE, None),
    (200, -32602, "range 20000 exceeds limit of 10000", RANGE, None),
    (200, -32005, "daily request count exceeded, request rate limited", RATE, None),
    (429, -32005, "project ID request rate exceeded", RATE, None),
    # Alchemy
    (
        400,
        -32600,
        "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on your "
        "parameters, this block range should work: [0x1, 0xa]. Upgrade to PAYG for expanded block range.",
        RANGE,
        (1, 10),
    ),
    (
        200,
        -32602,
        "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the "
        "response size. Based on your parameters and the response size limit, this block range should work: [0x5, 0x9]",
        RANGE,
        (5, 9),
    ),
    (200, -32600, "you can make eth_getLogs requests with up to a 500 block range", RANGE, None),
    (200, -32000, "Query timeout exceeded. Consider reducing your block range.", RANGE, None),
    (200, 429, "Your app has exceeded its compute units per second capacity.", RATE, None),
    # QuickNode
    (413, -32614, "eth_getLogs is limited to a 10,000 range", RANGE, None),
    (413, None, "HTTP 413", RANGE, None),
    (200, -32007, "50/second request limit reached - reduce calls per second or upgrade your account", RATE, None),
    # reth, Base
    (200, -32602, "query exceeds max results 20000, retry with the range 100-200", RANGE, (100, 200)),
    (200, -32602, "query exceeds max block range 100000", RANGE, None),
    # others
    (200, -32000, "exceed maximum block range: 50000", RANGE, None),
    (200, -32000, "requested too many blocks from 1 to 9000, maximum is set to 2048", RANGE, None),
    (
        200,
        -32701,
        "Please specify an address in your request or, to remove restrictions, limit to 10 blocks",
        RANGE,
        None,
    ),
    (200, -32000, "logs matched by query exceeds limit of 10000", RANGE, None),
    (200, -32603, "Too many logs requested. Max logs per response is 20000.", RANGE, None),
    (200, -32008, "Response is too big", RANGE, None),
    (200, -32020, "backend response too large", RANGE, None),
    (200, -32002, "request timed out", RANGE, None),
    (200, -32005, "limit exceeded", RATE, None),
    (200, -32005, "limit exceeded for eth_getLogs", RATE, None),
    (200, -32097, "Too many requests, please slow down", RATE, None),
    (200, -32602, "block range extends beyond current head block", TRANSIENT, None),
    (200, -32000, "requested to block 123 after last accepted block 100", TRANSIENT, None),
    (200, 4444, "pruned history unavailable", STATE, None),
    (200, -32601, "the method eth_getLogs does not exist/is not available", REFUSED, None),
    (200, -32602, "invalid argument 0: hex string has length 41, want 40 for common.Address", REFUSED, None),
    (503, None, "HTTP 503", TRANSIENT, None),
    (502, None, "HTTP 502", TRANSIENT, None),
    (408, None, "HTTP 408", TRANSIENT, None),
    (429, None, "HTTP 429", RATE, None),
]

OTHERS = [
    ("eth_call", 200, 3, "execution reverted", REFUSED),
    ("eth_call", 200, 3, "execution reverted: rate limit exceeded", REFUSED),
    ("eth_call", 200, -32000, "execution reverted: too many requests, state pruned", REFUSED),
    ("eth_call", 500, -32000, "execution reverted", REFUSED),
    ("eth_call", 200, -32000, "out of gas", REFUSED),
    ("eth_call", 200, -32015, "VM execution error.", REFUSED),
    ("eth_call", 200, -32000, "missing trie node 1f2e (path ) state 0x1f2e is not available", STATE),
    ("eth_call", 200, -32000, "required historical state unavailable (reexec=128)", STATE),
    ("eth_getBalance", 200, -32000, "header not found", STATE),
    ("eth_getBalance", 200, -32001, "block not found: hash 0xabcd", STATE),
    ("eth_getBalance", 200, -32001, "Resource not found", STATE),
    ("eth_call", 200, -32002, "project ID does not have access to archive state", STATE),
    ("eth_call", 200, -32000, "state already discarded by pruning", STATE),
    ("eth_getBalance", 200, -32000, "World state unavailable", STATE),
    ("eth_getBalance", 200, -32602, "range is no parameter of this", REFUSED),
    ("eth_getCode", 429, None, "HTTP 429", RATE),
    ("eth_getCode", 500, -32603, "Internal error", TRANSIENT),
    ("eth_getCode", 200, -32603, "Internal error", REFUSED),
    ("eth_getCode", 403, None, "HTTP 403 invalid key", REFUSED),
]


@pytest.mark.parametrize(("status", "code", "message", "kind", "suggested"), LOGS)
def test_errors_of_eth_get_logs(
    status: int, code: int | None, message: str, kind: FaultKind, suggested: tuple[int, int] | None
) -> None:
    fault = classify("eth_getLogs", status, code, message)
    assert (fault.kind, fault.suggested) == (kind, suggested)


@pytest.mark.parametrize(("method", "status", "code", "message", "kind"), OTHERS)
def test_errors_of_other_methods(method: str, status: int, code: int | None, message: str, kind: FaultKind) -> None:
    assert classify(method, status, code, message).kind is kind


def test_range_in_the_error_data_is_the_suggestion() -> None:
    fault = classify("eth_getLogs", 200, -32005, "query returned too much", b'{"from": "0x10", "to": "0x1f"}')
    assert (fault.kind, fault.suggested) == (RANGE, (16, 31))


@pytest.mark.parametrize("data", [{"from": "soon", "to": "later"}, {"from": 1, "to": 2}, ["0x1"], "0x1", None])
def test_error_data_without_a_range_suggests_nothing(data: object) -> None:
    encoded = json.dumps(data).encode()
    assert classify("eth_getLogs", 200, -32005, "query returned more than 10000 results", encoded).suggested is None


@pytest.mark.parametrize("digits", [20, 5_000])
@pytest.mark.parametrize("form", ["range {}-{}", "range 1-{}", "range {}-1", "[0x{}, 0x{}]", "[0x1, 0x{}]"])
def test_suggested_range_with_endless_digits_is_ignored(form: str, digits: int) -> None:
    message = "too many results, use " + form.format("9" * digits, "9" * digits)
    fault = classify("eth_getLogs", 200, -32005, message)
    assert (fault.kind, fault.suggested) == (RANGE, None)
    data = json.dumps({"from": "0x" + "9" * digits, "to": "0x1"}).encode()
    assert classify("eth_getLogs", 200, -32005, "too many results", data).suggested is None


def test_any_message_is_classified() -> None:
    """Words, numbers and brackets of the known messages in any order raise nothing."""
    random.seed(34)
    pieces = [*"[]{}-,: \n\0", "0x", "range", "retry with the range", "results", "exceed", "9" * 30, "\u0663", "block"]
    for _ in range(2_000):
        message = "".join(random.choices(pieces, k=random.randrange(40)))
        for method in ("eth_getLogs", "eth_call"):
            classify(
                method, random.choice([200, 400, 503]), random.choice([None, -32000, 3]), message, message.encode()
            )
