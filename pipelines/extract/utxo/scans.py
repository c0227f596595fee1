"""Scans of the node's unspent outputs: balances at its newest block, and outputs older than a collected range."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, NamedTuple

import msgspec
import polars as pl

from pipelines.extract.errors import ChainReorganised, MalformedAnswer, StateUnavailable
from pipelines.extract.family import BALANCES, NATIVE
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.extract.utxo.headers import Hash, is_orphaned

SCAN_CALL = "scantxoutset"
# A node sends nothing before the end of a scan: some minutes on the largest network.
_SCAN_SECONDS = 600.0


class _Unspent(msgspec.Struct):
    txid: Hash
    vout: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    script: str = msgspec.field(name="scriptPubKey")
    amount: Decimal
    height: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class _Answer(msgspec.Struct):
    success: bool
    height: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    bestblock: Hash
    unspents: list[_Unspent]


class Unspent(NamedTuple):
    """An unspent output of a scanned script: base units, its place in its transaction, and the block that made it."""

    address: str
    transaction: str
    position: int
    amount: int
    created: int


class Scan(NamedTuple):
    """The unspent outputs of some scripts after a block."""

    block_number: int
    block_hash: str
    unspent: list[Unspent]


def scan(client: RpcClient, scripts: Mapping[str, bytes], decimals: int) -> Scan:
    """Find all unspent outputs of scripts at the node's newest block; one scan takes minutes on a main network.

    Args:
        scripts: by address.
        decimals: of the native asset.

    Raises:
        RateLimited: another scan runs, still so after waiting.
        MalformedAnswer: outputs of other scripts, of later blocks, twice, or with more digits than base units have.
    """
    asked = {script.hex(): address for address, script in scripts.items()}
    descriptors = [{"desc": f"raw({script})"} for script in asked]
    answer = client.call(SCAN_CALL, ["start", descriptors], _Answer, patience=_SCAN_SECONDS)

    def refused(detail: str) -> MalformedAnswer:
        return MalformedAnswer(client.network, SCAN_CALL, answer.height, answer.height, detail)

    if not answer.success:
        raise refused("the scan was aborted")
    found: dict[tuple[str, int], Unspent] = {}
    for one in answer.unspents:
        address = asked.get(one.script)
        if address is None:
            raise refused("an output of a script that was not requested")
        if one.height > answer.height or (one.txid, one.vout) in found:
            raise refused("an output of a later block, or the same one twice")
        amount = base_units(one.amount, decimals)
        if amount is None:
            raise refused(f"an amount with more than {decimals} digits behind the point, or below zero")
        found[one.txid, one.vout] = Unspent(address, one.txid, one.vout, amount, one.height)
    return Scan(answer.height, answer.bestblock, list(found.values()))


def base_units(amount: Decimal, decimals: int) -> int | None:
    """Return an amount in base units; None where it is no whole number of them, or below zero."""
    # Scaling an amount without more digits than a context keeps is exact; nodes send at most 8 behind the point.
    if not amount.is_finite() or len(amount.as_tuple().digits) > 20:
        return None
    scaled = amount.scaleb(decimals)
    return int(scaled) if scaled == scaled.to_integral_value() and scaled >= 0 else None


def read_balances(
    client: RpcClient, scripts: Mapping[str, bytes], block_number: int, block_hash: str, decimals: int
) -> pl.DataFrame:
    """Return BALANCES of the scripts' addresses, one row each, at the node's newest block.

    Raises:
        ChainReorganised: the block left the chain.
        StateUnavailable: the node's newest block is another one by now.
    """
    found = scan(client, scripts, decimals)
    if (found.block_number, found.block_hash) != (block_number, block_hash):
        names = (client.network, SCAN_CALL, block_number, block_number)
        if is_orphaned(client, block_hash):
            detail = f"block {block_number} left the chain before its balances were read"
            raise ChainReorganised(*names, detail, block_number=block_number)
        detail = f"the node scans its newest block alone, which is {found.block_number} by now"
        raise StateUnavailable(*names, detail)
    sums = dict.fromkeys(scripts, 0)
    for one in found.unspent:
        sums[one.address] += one.amount
    rows = [(NATIVE, address, block_number, block_hash, str(amount)) for address, amount in sums.items()]
    return pl.DataFrame(rows, schema=BALANCES, orient="row")
