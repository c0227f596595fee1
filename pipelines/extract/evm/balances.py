"""Balances and supplies read from contract state at the end of one block."""

from collections.abc import Sequence

import polars as pl

from pipelines.extract.errors import ExtractError
from pipelines.extract.evm.contracts import calldata
from pipelines.extract.evm.hexadecimal import word_to_int
from pipelines.extract.evm.state import CODE, BlockPoint, Output, Read, read_state
from pipelines.extract.family import BALANCES, NATIVE, SUPPLIES
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.extract.units import UnreadUnits

# web3 encodes 100,000 calls in 3 seconds. All begin alike, and end with the address.
_BALANCE_OF = calldata("balanceOf", f"0x{0:040x}")[:-40]
_TOTAL_SUPPLY = calldata("totalSupply")
_NOTHING = "0x"


def read_balances(
    client: RpcClient,
    pairs: Sequence[tuple[str, str]],
    block_hash: str,
    block_number: int,
    multicall: str | None,
    unread: UnreadUnits | None = None,
) -> pl.DataFrame:
    """Read `balanceOf` of each (token, holder), and the network's own balance where the token is `native`.

    Args:
        pairs: lower-case addresses.
        block_hash, block_number: of the same block.
        multicall: address of a Multicall3, or None.
        unread: as for `read_state`.

    Returns:
        BALANCES; one row per pair that can be read, in their order. 0 where there is no contract at that block, null
        where the token reverts or does not return exactly one word.

    Raises:
        StateUnavailable: the node has no state of that block.
        ChainReorganised: the block is not in the chain any more.
    """
    reads = [
        Read(token, holder) if token == NATIVE else Read(token, _BALANCE_OF + holder[2:]) for token, holder in pairs
    ]
    amounts = _read_amounts(
        client, [token for token, _ in pairs], reads, BlockPoint(block_number, block_hash), multicall, unread
    )
    rows = [
        (*pair, block_number, block_hash, amount)
        for pair, amount in zip(pairs, amounts, strict=True)
        if not isinstance(amount, ExtractError)
    ]
    return pl.DataFrame(rows, schema=BALANCES, orient="row")


def read_supplies(
    client: RpcClient,
    tokens: Sequence[str],
    block_hash: str,
    block_number: int,
    multicall: str | None,
    unread: UnreadUnits | None = None,
) -> pl.DataFrame:
    """Read `totalSupply` of each token.

    Returns:
        SUPPLIES; one row per token that can be read, in their order; 0 and null as in `read_balances`.

    Raises:
        StateUnavailable, ChainReorganised: as `read_balances`.
    """
    reads = [Read(token, _TOTAL_SUPPLY) for token in tokens]
    amounts = _read_amounts(client, tokens, reads, BlockPoint(block_number, block_hash), multicall, unread)
    rows = [
        (token, block_number, block_hash, amount)
        for token, amount in zip(tokens, amounts, strict=True)
        if not isinstance(amount, ExtractError)
    ]
    return pl.DataFrame(rows, schema=SUPPLIES, orient="row")


def _read_amounts(
    client: RpcClient,
    tokens: Sequence[str],
    reads: Sequence[Read],
    block: BlockPoint,
    multicall: str | None,
    unread: UnreadUnits | None,
) -> list[str | ExtractError | None]:
    """Return the number that each token returns for its read, as decimal text; an error where it cannot be read."""
    outputs = read_state(client, reads, block, multicall, unread)
    # A call to an address without code succeeds and returns nothing: the balance or supply there is 0.
    silent = sorted({token for token, output in zip(tokens, outputs, strict=True) if output == _NOTHING})
    codes = read_state(client, [Read(CODE, token) for token in silent], block, None, unread)
    coded = dict(zip(silent, codes, strict=True))
    return [
        _amount(output) if output != _NOTHING else _of_silent(coded[token])
        for token, output in zip(tokens, outputs, strict=True)
    ]


def _of_silent(code: Output) -> str | ExtractError | None:
    """Return the amount of a token that returns nothing: 0 where there is no contract."""
    if isinstance(code, ExtractError):
        return code
    return "0" if code == _NOTHING else None


def _amount(output: Output) -> str | ExtractError | None:
    if isinstance(output, ExtractError):
        return output
    number = word_to_int(output)
    return None if number is None else str(number)
