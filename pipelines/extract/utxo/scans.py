"""Scans of the node's unspent outputs at its newest block."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, NamedTuple

import msgspec

from pipelines.extract.errors import CallRefused, ExtractError, MalformedAnswer, RangeRefused, StateUnavailable
from pipelines.extract.jsonrpc.client import RpcClient, decoder_of
from pipelines.extract.utxo.dialect import SCAN_CALL
from pipelines.extract.utxo.headers import Hash

# A node sends nothing before the end of a scan: some minutes on the largest network.
_SCAN_SECONDS = 600.0
# Refusals of some scripts. A time-out is the node's: a scan takes as long for one script as for all.
_DIVISIBLE = (RangeRefused, MalformedAnswer, CallRefused)
# OP_RETURN: no output with this script is kept.
_UNSPENDABLE = b"\x6a"
_LONGEST_AMOUNT = 20
_NUMBER = re.compile(rb"[0-9]{1,10}(\.[0-9]{1,10})?([eE][+-]?0?[0-9])?")


class _Unspent(msgspec.Struct):
    txid: Hash
    vout: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    script: str = msgspec.field(name="scriptPubKey")
    amount: msgspec.Raw
    height: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class _Answer(msgspec.Struct):
    success: bool
    height: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    bestblock: Hash
    # Decoded one by one: all at once would take several times the bytes of the answer.
    unspents: list[msgspec.Raw]


class Unspent(NamedTuple):
    """An unspent output of a scanned script: base units, its place in its transaction, and the block that made it."""

    address: str
    transaction: str
    position: int
    amount: int
    created: int


class Scan(NamedTuple):
    """The unspent outputs of some scripts after a block, and the errors of addresses that cannot be scanned."""

    block_number: int
    block_hash: str
    unspent: list[Unspent]
    refused: Mapping[str, ExtractError]


def scan(client: RpcClient, scripts: Mapping[bytes, str], decimals: int) -> Scan:
    """Find all unspent outputs of scripts at the node's newest block; one scan takes minutes on a main network.

    Where the node refuses scripts together, and not a script without outputs, they are scanned in halves down to those
    at fault.

    Args:
        scripts: addresses by script.
        decimals: of the native asset.

    Raises:
        RateLimited: another scan runs, still so after waiting.
        StateUnavailable: the newest block changed between two parts.
        ExtractError: the node refuses every scan.
    """
    try:
        return _scan(client, scripts, decimals)
    except _DIVISIBLE as error:
        return _in_halves(client, scripts, decimals, _scan(client, {_UNSPENDABLE: ""}, decimals), error)


def _in_halves(
    client: RpcClient, scripts: Mapping[bytes, str], decimals: int, control: Scan, error: ExtractError
) -> Scan:
    """Scan scripts that the node refuses together; a single one is left out."""
    if len(scripts) == 1:
        return control._replace(refused=dict.fromkeys(scripts.values(), error))
    ordered = sorted(scripts)
    middle = len(ordered) // 2
    unspent: list[Unspent] = []
    refused: dict[str, ExtractError] = {}
    for half in (ordered[:middle], ordered[middle:]):
        part = {script: scripts[script] for script in half}
        try:
            found = _scan(client, part, decimals)
        except _DIVISIBLE as refusal:
            found = _in_halves(client, part, decimals, control, refusal)
        if found[:2] != control[:2]:
            detail = "the newest block changed between two scans"
            raise StateUnavailable(client.network, SCAN_CALL, control.block_number, control.block_number, detail)
        unspent += found.unspent
        refused |= found.refused
    return control._replace(unspent=unspent, refused=refused)


def _scan(client: RpcClient, scripts: Mapping[bytes, str], decimals: int) -> Scan:
    asked = {script.hex(): address for script, address in scripts.items()}
    descriptors = [{"desc": f"raw({script})"} for script in asked]
    answer = client.call(SCAN_CALL, ["start", descriptors], _Answer, patience=_SCAN_SECONDS)

    def refused(detail: str) -> MalformedAnswer:
        return MalformedAnswer(client.network, SCAN_CALL, answer.height, answer.height, detail)

    if not answer.success:
        raise refused("the scan was aborted")
    decoder = decoder_of(_Unspent)
    references: set[tuple[str, int]] = set()
    found: list[Unspent] = []
    for raw in answer.unspents:
        try:
            one: _Unspent = decoder.decode(raw)
        except msgspec.DecodeError as error:
            raise refused(str(error)) from None
        address = asked.get(one.script)
        if address is None:
            raise refused("an output of a script that was not requested")
        if one.height > answer.height or (one.txid, one.vout) in references:
            raise refused("an output of a later block, or the same one twice")
        references.add((one.txid, one.vout))
        amount = base_units(bytes(one.amount), decimals)
        if amount is None:
            raise refused(f"an amount with more than {decimals} digits behind the point, or below zero")
        found.append(Unspent(address, one.txid, one.vout, amount, one.height))
    return Scan(answer.height, answer.bestblock, found, {})


def base_units(text: bytes, decimals: int) -> int | None:
    """Return an amount in base units, from a JSON number; None where it is no whole number of them, or below zero."""
    whole, _, part = text.partition(b".")
    if len(part) == decimals and whole.isdigit() and part.isdigit():
        # The form of nodes; an amount of 20 digits is more than any chain has.
        return int(whole + part) if len(text) <= _LONGEST_AMOUNT else None
    if _NUMBER.fullmatch(text) is None:
        return None
    scaled = Decimal(text.decode()).scaleb(decimals)
    return int(scaled) if scaled == scaled.to_integral_value() and scaled >= 0 else None
