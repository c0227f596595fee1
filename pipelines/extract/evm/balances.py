"""Balances and supplies read from contract state at the end of one block."""

from collections.abc import Sequence

import polars as pl

from pipelines.extract.evm.contracts import calldata
from pipelines.extract.evm.hexadecimal import word_to_int
from pipelines.extract.evm.state import CODE, BlockPoint, Read, read_state
from pipelines.extract.family import BALANCES, NATIVE, SUPPLIES
from pipelines.extract.jsonrpc.client import RpcClient

# web3 encodes 100,000 calls in 3 seconds. All begin alike, and end with the address.
_BALANCE_OF = calldata("balanceOf", f"0x{0:040x}")[:-40]
_TOTAL_SUPPLY = calldata("totalSupply")
_NOTHING = "0x"


def read_balances(
    client: RpcClient, pairs: Sequence[tuple[str, str]], block_hash: str, block_number: int, multicall: str | None
) -> pl.DataFrame:
    """Read `balanceOf` of each (token, holder), and the network's own balance where the token is `native`.

    Args:
        pairs: lower-case addresses.
        block_hash, block_number: of the same block.
        multicall: address of a Multicall3, or None.

    Returns:
        BALANCES; one row per pair, in their order. 0 where there is no contract at that block, null where the token
        reverts or does not return exactly one word.

    Raises:
        StateUnavailable: the node has no state of that block.
        ChainReorganised: the block is not in the chain any more.
    """
    reads = [
        Read(token, holder) if token == NATIVE else Read(token, _BALANCE_OF + holder[2:]) for token, holder in pairs
    ]
    tokens = [token for token, _ in pairs]
    quantities = _read_amounts(client, tokens, reads, BlockPoint(block_number, block_hash), multicall)
    return pl.DataFrame(
        {
            "token_address": tokens,
            "holder_address": [holder for _, holder in pairs],
            "block_number": [block_number] * len(pairs),
            "block_hash": [block_hash] * len(pairs),
            "quantity_raw": quantities,
        },
        schema=BALANCES,
    )


def read_supplies(
    client: RpcClient, tokens: Sequence[str], block_hash: str, block_number: int, multicall: str | None
) -> pl.DataFrame:
    """Read `totalSupply` of each token.

    Returns:
        SUPPLIES; one row per token, in their order; 0 and null as in `read_balances`.

    Raises:
        StateUnavailable, ChainReorganised: as `read_balances`.
    """
    reads = [Read(token, _TOTAL_SUPPLY) for token in tokens]
    supplies = _read_amounts(client, tokens, reads, BlockPoint(block_number, block_hash), multicall)
    return pl.DataFrame(
        {
            "token_address": list(tokens),
            "block_number": [block_number] * len(tokens),
            "block_hash": [block_hash] * len(tokens),
            "total_supply_raw": supplies,
        },
        schema=SUPPLIES,
    )


def _read_amounts(
    client: RpcClient, tokens: Sequence[str], reads: Sequence[Read], block: BlockPoint, multicall: str | None
) -> list[str | None]:
    """Return the number that each token returns for its read, as decimal text."""
    outputs = read_state(client, reads, block, multicall)
    # A call to an address without code succeeds and returns nothing: the balance or supply there is 0.
    silent = sorted({token for token, output in zip(tokens, outputs, strict=True) if output == _NOTHING})
    codes = read_state(client, [Read(CODE, token) for token in silent], block, None)
    absent = {token for token, code in zip(silent, codes, strict=True) if code == _NOTHING}
    return ["0" if token in absent else _amount(output) for token, output in zip(tokens, outputs, strict=True)]


def _amount(output: str | None) -> str | None:
    number = word_to_int(output)
    return None if number is None else str(number)
