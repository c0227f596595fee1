"""The JSON-RPC of this family's nodes: the name of the chain, errors, and the blocks of a call.

Source: https://github.com/bitcoin/bitcoin/blob/master/src/rpc/protocol.h
"""

import re

from pipelines.extract.jsonrpc.client import Call, Dialect
from pipelines.extract.jsonrpc.faults import Fault, FaultKind

BAD_PARAMETER = -8
"""Code of a height above the tip, and of a scan while another one runs."""
NOT_FOUND = -5
"""Code of a block or a transaction that the node does not have."""

SCAN_CALL = "scantxoutset"

_WARMING_UP = -28
_NOT_CONNECTED = (-9, -10)
_PRUNED = re.compile(r"pruned data|block not available|not fully downloaded|undo data", re.IGNORECASE)
_BUSY = re.compile(r"work queue|scan already in progress|rate.?limit|too many requests", re.IGNORECASE)


def _classify(method: str, status: int, code: int | None, message: str, data: bytes = b"") -> Fault:
    """Return the meaning of an error. Nodes send errors of calls with the status 500, and the code in the body."""
    kind = FaultKind.REFUSED
    if status == 429 or _BUSY.search(message):
        kind = FaultKind.RATE_LIMITED
    elif code == _WARMING_UP or code in _NOT_CONNECTED or (code is None and (status >= 500 or status == 408)):
        kind = FaultKind.TRANSIENT
    elif _PRUNED.search(message):
        kind = FaultKind.STATE_UNAVAILABLE
    return Fault(kind, code, message)


def _blocks_of(call: Call) -> tuple[int, int] | None:
    """Return the block range of a call, where its parameters name one by number."""
    method, params = call
    if method == "getblockhash" and params and isinstance(params[0], int):
        return params[0], params[0]
    return None


# A scan of fewer scripts has a smaller answer.
UTXO = Dialect(("getblockhash", [0]), str, _classify, _blocks_of, frozenset({SCAN_CALL}))
