"""Functions and events of contracts by name: web3 encodes their calls and decodes their answers.

Requests go by `RpcClient` alone, so web3 has no provider here.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from eth_abi.exceptions import DecodingError
from web3 import Web3
from web3.providers import BaseProvider

from pipelines.extract.evm.hexadecimal import WORD_CHARACTERS

_WEB3 = Web3(BaseProvider())


def _view(name: str, inputs: Sequence[str] = (), outputs: Sequence[str] = ("uint256",)) -> dict[str, Any]:
    return {
        "type": "function",
        "stateMutability": "view",
        "name": name,
        "inputs": [{"name": f"input{place}", "type": kind} for place, kind in enumerate(inputs)],
        "outputs": [{"name": f"output{place}", "type": kind} for place, kind in enumerate(outputs)],
    }


ROUND = ("uint80", "int256", "uint256", "uint256", "uint80")
"""Types of a round of a price feed."""

# ERC-20, ERC-165, Ownable and Chainlink's aggregators. An answer is decoded as a caller expects it: a contract may be
# of none of these.
_FUNCTIONS: Any = [
    _view("balanceOf", ["address"]),
    _view("totalSupply"),
    _view("decimals"),
    _view("symbol", outputs=["string"]),
    _view("name", outputs=["string"]),
    _view("supportsInterface", ["bytes4"], ["bool"]),
    _view("owner", outputs=["address"]),
    _view("latestRoundData", outputs=ROUND),
    _view("getRoundData", ["uint80"], ROUND),
    _view("phaseAggregators", ["uint16"], ["address"]),
]


@cache
def _function(name: str) -> tuple[str, Sequence[str]]:
    """Return a function's selector as 0x text, and the types of its arguments."""
    found = _WEB3.eth.contract(abi=_FUNCTIONS).get_function_by_name(name)
    return Web3.to_hex(Web3.keccak(text=found.signature)[:4]), found.argument_types


def calldata(function: str, *arguments: object) -> str:
    """Return the call of a function as 0x text."""
    selector, kinds = _function(function)
    return selector + _WEB3.codec.encode(kinds, arguments).hex()


def event_topic(signature: str) -> str:
    """Return the first topic of an event's logs, such as that of `Transfer(address,address,uint256)`, as 0x text."""
    return Web3.to_hex(Web3.keccak(text=signature))


def decode(kinds: Sequence[str], output: str | None) -> tuple[Any, ...] | None:
    """Return the values in an answer; None where a contract reverted or answers something else.

    Args:
        kinds: types of the ABI.
        output: 0x text.
    """
    if output is None:
        return None
    try:
        return _WEB3.codec.decode(kinds, bytes.fromhex(output[2:]))
    except (DecodingError, OverflowError):
        return None


def decode_words(kinds: Sequence[str], output: str | None) -> tuple[Any, ...] | None:
    """Return the values in an answer of exactly one word for each."""
    return decode(kinds, output) if output is not None and len(output) == 2 + WORD_CHARACTERS * len(kinds) else None


def decode_text(output: str | None) -> bytes | None:
    """Return the bytes of a string, or of the bytes32 that early tokens answer; None for anything else."""
    found = decode_words(["bytes32"], output) or decode(["bytes"], output)
    return None if found is None else bytes(found[0])
