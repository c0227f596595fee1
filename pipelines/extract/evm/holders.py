"""Likely holders of a token that no event names: its creator, its owner, the token itself, and senders."""

from collections.abc import Sequence

import msgspec

from pipelines.extract.errors import ExtractError, MalformedAnswer
from pipelines.extract.evm.blocks import HEADER_CALL
from pipelines.extract.evm.contracts import calldata, decode_words
from pipelines.extract.evm.hexadecimal import Address, Hash
from pipelines.extract.evm.state import BlockPoint, Read, read_state
from pipelines.extract.jsonrpc.client import Call, RpcClient

_NOBODY = f"0x{0:040x}"


class _Transaction(msgspec.Struct, gc=False, rename="camel"):
    hash: Hash
    from_: Address = msgspec.field(name="from")
    to: Address | None = None


class _Block(msgspec.Struct):
    transactions: list[_Transaction]


class _Receipt(msgspec.Struct, rename="camel"):
    contract_address: Address | None = None


def read_likely_holders(client: RpcClient, token: str, created: int | None, block_number: int) -> list[str]:
    """As `Node.likely_holders`; the creator is not found if another contract created the token."""
    found = [token, *_read_owner(client, token, block_number)]
    if created is not None:
        found += _read_creator(client, token, created)
    return sorted(set(found))


def _read_owner(client: RpcClient, token: str, block_number: int) -> list[str]:
    (output,) = read_state(client, [Read(token, calldata("owner"))], BlockPoint(block_number, None), None)
    if isinstance(output, ExtractError):
        return []
    return [owner for owner in decode_words(["address"], output) or () if owner != _NOBODY]


def _read_creator(client: RpcClient, token: str, created: int) -> list[str]:
    block = client.call(HEADER_CALL, [hex(created), True], _Block | None)
    if block is None:
        raise MalformedAnswer(client.network, HEADER_CALL, created, created, "the block is missing")
    creating = [transaction for transaction in block.transactions if transaction.to is None]
    calls: list[Call] = [("eth_getTransactionReceipt", [transaction.hash]) for transaction in creating]
    receipts = client.batch(calls, _Receipt | None)
    return [
        transaction.from_.lower()
        for transaction, receipt in zip(creating, receipts, strict=True)
        if receipt is not None and receipt.contract_address is not None and receipt.contract_address.lower() == token
    ]


def read_senders(client: RpcClient, transactions: Sequence[str]) -> list[str | None]:
    """As `Node.senders`."""
    calls: list[Call] = [("eth_getTransactionByHash", [hash_]) for hash_ in transactions]
    answers = client.batch(calls, _Transaction | None)
    return [None if answer is None else answer.from_.lower() for answer in answers]
