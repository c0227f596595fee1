"""Classification of providers' errors. Pure: words and numbers in, a kind out; nothing is sent or retried here.

The messages are those of the providers' documentation and issue trackers; tests/unit/extract holds them as a table.
"""

import re
from typing import Annotated

import msgspec

from pipelines.extract.errors import CallRefused
from pipelines.extract.jsonrpc.faults import Fault, FaultKind

_REVERTED = re.compile(
    r"revert|invalid ?(fe)?opcode|out ?of ?gas|vm execution error|vm exception|evm error|invalid jump"
    r"|stack ?(under|over)flow|stack limit|bad instruction|write protection",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"rate.?limit|too many requests|request limit|requests? per |per second|compute units|throughput|quota"
    r"|daily request|request rate|call rate|over capacity|exceeded.{0,40}capacity|slow down|concurrent requests",
    re.IGNORECASE,
)
_BEYOND_HEAD = re.compile(
    r"beyond (the )?(current |latest )?(head|block|tip)|after (the )?last (accepted|known) block"
    r"|(greater|higher|newer) than (the )?(current |latest )?(head|latest|block)"
    r"|exceeds (the )?(current )?(head|latest)",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"range|too many (blocks|logs|results|events)"
    r"|(more than|exceed\w*|max\w*|over|limit\w*).{0,60}\b(results|logs|blocks)"
    r"|\b(results|logs|blocks|query)\b.{0,40}exceed"
    r"|response (is |size )?(too|exceed)|too (large|big|wide)|timed?[ -]?out|took too long",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"missing trie node|state.{0,40}(unavailable|not available|missing)|no state available|pruned|pruning|archive"
    r"|historical state|header not found|header for hash|unknown block|block.{0,90}not found|not currently canonical"
    r"|history.{0,30}(not available|unavailable)|state histories",
    re.IGNORECASE,
)
# Block numbers have at most 19 digits, as in a 64-bit integer.
_HEX_RANGE = re.compile(r"\[\s{0,9}(0x[0-9a-f]{1,16})\s{0,9},\s{0,9}(0x[0-9a-f]{1,16})\s{0,9}\]", re.IGNORECASE)
_DECIMAL_RANGE = re.compile(r"range\s{1,9}([0-9]{1,19})\s{0,9}-\s{0,9}([0-9]{1,19})(?![0-9])", re.IGNORECASE)
RANGED = frozenset({"eth_getLogs"})
"""Methods that can have too wide a range of blocks."""
_PRUNED_HISTORY = 4444
_RESOURCE_NOT_FOUND = -32001
_LIMIT_EXCEEDED = -32005
_QUICKNODE_REQUESTS = -32007
_QUICKNODE_RANGE = -32614
_LONGEST_DATA = 1_000
_BlockNumber = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{1,16}\Z")]


class _RangeData(msgspec.Struct, rename={"first": "from", "last": "to"}):
    """The data of an error that proposes a block range."""

    first: _BlockNumber
    last: _BlockNumber


_RANGE_DATA = msgspec.json.Decoder(_RangeData)


def classify(method: str, status: int, code: int | None, message: str, data: bytes = b"") -> Fault:
    """Return the meaning of a provider's error.

    Args:
        method: JSON-RPC method that was called; only one of `RANGED` can have too wide a range.
        status: HTTP status.
        code, message, data: of the JSON-RPC error, data as received; code None where the body held none.

    Returns:
        The fault; `suggested` is the block range that the provider proposed, first and last included.
    """

    def fault(kind: FaultKind, suggested: tuple[int, int] | None = None) -> Fault:
        return Fault(kind, code, message, suggested)

    # A contract chooses its own revert reason, so it can imitate any message of a provider.
    if code is not None and method == "eth_call" and _is_revert(code, message):
        return fault(FaultKind.REFUSED)
    if status == 429 or code == 429 or code == _QUICKNODE_REQUESTS or _RATE.search(message):
        return fault(FaultKind.RATE_LIMITED)
    if method in RANGED:
        if _BEYOND_HEAD.search(message):
            # One address may lead to several nodes: this one has not reached the head that another one returned.
            return fault(FaultKind.TRANSIENT)
        suggested = _suggestion(message, data)
        if suggested or status == 413 or code == _QUICKNODE_RANGE or _RANGE.search(message):
            return fault(FaultKind.RANGE_REFUSED, suggested)
    if code == _LIMIT_EXCEEDED:
        return fault(FaultKind.RATE_LIMITED)
    if code in (_PRUNED_HISTORY, _RESOURCE_NOT_FOUND) or _STATE.search(message):
        return fault(FaultKind.STATE_UNAVAILABLE)
    if status >= 500 or status == 408:
        return fault(FaultKind.TRANSIENT)
    return fault(FaultKind.REFUSED)


def _suggestion(message: str, data: bytes) -> tuple[int, int] | None:
    if data.startswith(b"{") and len(data) <= _LONGEST_DATA:
        try:
            proposed = _RANGE_DATA.decode(data)
        except msgspec.DecodeError:
            pass
        else:
            return int(proposed.first, 16), int(proposed.last, 16)
    if found := _HEX_RANGE.search(message):
        return int(found[1], 16), int(found[2], 16)
    if found := _DECIMAL_RANGE.search(message):
        return int(found[1]), int(found[2])
    return None


def is_revert(error: CallRefused) -> bool:
    """Return whether the contract refused, and not the node: this is a fact about the contract."""
    return _is_revert(error.code, error.message)


def _is_revert(code: int | None, message: str) -> bool:
    """Return whether a JSON-RPC error says that the called contract failed, in the words of any client."""
    return code == 3 or _REVERTED.search(message) is not None
