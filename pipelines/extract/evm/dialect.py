"""The JSON-RPC of EVM nodes: the name of the chain, errors, and the blocks of a call."""

from pipelines.extract.evm.faults import RANGED, classify
from pipelines.extract.jsonrpc.client import Call, Dialect


def _chain_of(answer: str) -> str:
    """Return the chain id in decimal digits; the answer itself where it is no number."""
    try:
        return str(int(answer, 16))
    except ValueError:
        return answer


def _blocks_of(call: Call) -> tuple[int, int] | None:
    """Return the block range of a call, where its parameters name one by number."""
    method, params = call
    match method, *params:
        case "eth_getLogs", {"fromBlock": str(first), "toBlock": str(last)}:
            return int(first, 16), int(last, 16)
        case (("eth_getBlockByNumber" | "trace_block"), str(number), *_) if number.startswith("0x"):
            return int(number, 16), int(number, 16)
        case "debug_traceBlockByNumber", str(number), *_:
            return int(number, 16), int(number, 16)
        case (("eth_call" | "eth_getBalance" | "eth_getCode"), _, str(number)) if number.startswith("0x"):
            return int(number, 16), int(number, 16)
    return None


EVM = Dialect(("eth_chainId", []), _chain_of, classify, _blocks_of, RANGED)
