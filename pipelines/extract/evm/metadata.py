"""Metadata read from contracts: whether each is a fungible token, and its symbol, name, decimals and supply.

Nothing is assumed: a value that a contract does not return is null, and `detail` says why.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.extract.errors import ExtractError
from pipelines.extract.evm.contracts import calldata, decode_text
from pipelines.extract.evm.hexadecimal import word_to_int
from pipelines.extract.evm.state import CODE, BlockPoint, Output, Read, read_state
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.extract.units import UnreadUnits

_LONGEST_SYMBOL = 64
_LONGEST_NAME = 256
_LARGEST_DECIMALS = 255


_CALLDATA = {
    "erc165": calldata("supportsInterface", bytes.fromhex("01ffc9a7")),
    # By its standard, an ERC-165 contract denies this one; a contract that confirms everything does not.
    "nothing": calldata("supportsInterface", bytes.fromhex("ffffffff")),
    "erc721": calldata("supportsInterface", bytes.fromhex("80ac58cd")),
    "erc1155": calldata("supportsInterface", bytes.fromhex("d9b67a26")),
    "symbol": calldata("symbol"),
    "name": calldata("name"),
    "decimals": calldata("decimals"),
    "totalSupply": calldata("totalSupply"),
    "balanceOf": calldata("balanceOf", f"0x{1:040x}"),
}
# Calls that tell a fungible token from others.
_INTERFACES = ("erc165", "nothing", "erc721", "erc1155")


@dataclass(frozen=True)
class ContractMetadata:
    """A contract as it describes itself.

    Attributes:
        contract_status: Unknown, Fungible, NotFungible or NoContract.
        standard: ERC-20, ERC-721, ERC-1155, or None.
        total_supply: in base units.
        detail: missing values and the reasons, in one sentence; None where nothing is missing.
    """

    address: str
    contract_status: str
    standard: str | None
    symbol: str | None
    name: str | None
    decimals: int | None
    total_supply: int | None
    detail: str | None


def read_contracts(
    client: RpcClient,
    addresses: Sequence[str],
    block: str | int,
    multicall: str | None = None,
    unread: UnreadUnits | None = None,
) -> list[ContractMetadata]:
    """Read the metadata of contracts.

    The description says if a contract reverts, cannot be read, returns nonsense or does not exist.

    Args:
        addresses: lower-case.
        block: hash or number; state is read at the end of this block.
        multicall: address of a Multicall3, or None.
        unread: as for `read_state`.

    Returns:
        One description per address, in their order.

    Raises:
        StateUnavailable: the node has no state of that block.
        ExtractError: other errors of the client.
    """
    point = BlockPoint(block, None) if isinstance(block, int) else BlockPoint(None, block)
    codes = read_state(client, [Read(CODE, address) for address in addresses], point, None, unread)
    contracts = [address for address, code in zip(addresses, codes, strict=True) if code not in (None, "0x")]
    reads = [Read(address, calldata) for address in contracts for calldata in _CALLDATA.values()]
    outputs = read_state(client, reads, point, multicall, unread)
    count = len(_CALLDATA)
    described = {
        address: _describe(address, dict(zip(_CALLDATA, outputs[at * count : (at + 1) * count], strict=True)))
        for at, address in enumerate(contracts)
    }
    return [described.get(address) or _no_contract(address) for address in addresses]


def _no_contract(address: str) -> ContractMetadata:
    detail = "There is no contract at this address."
    return ContractMetadata(address, "NoContract", None, None, None, None, None, detail)


def _describe(address: str, outputs: dict[str, Output]) -> ContractMetadata:
    errors = [output for output in outputs.values() if isinstance(output, ExtractError)]
    if len(errors) == len(outputs):
        reason = f"The contract cannot be read: {errors[0]}."
        return ContractMetadata(address, "Unknown", None, None, None, None, None, reason)
    problems: list[str] = []
    is_erc165 = _number(outputs["erc165"]) == 1 and _number(outputs["nothing"]) == 0
    standard: str | None = None
    if is_erc165 and _number(outputs["erc721"]) == 1:
        standard = "ERC-721"
    elif is_erc165 and _number(outputs["erc1155"]) == 1:
        standard = "ERC-1155"
    total_supply = _word(outputs, "totalSupply", problems)
    has_balances = _word(outputs, "balanceOf", problems) is not None
    symbol = _text(outputs, "symbol", _LONGEST_SYMBOL, problems)
    name = _text(outputs, "name", _LONGEST_NAME, problems)
    if standard is not None:
        nature = f"This is a contract of non-fungible tokens ({standard})."
        return ContractMetadata(address, "NotFungible", standard, symbol, name, None, None, nature)
    decimals = _word(outputs, "decimals", problems)
    if decimals is not None and decimals > _LARGEST_DECIMALS:
        problems.append(f"decimals() returns more than {_LARGEST_DECIMALS}")
        decimals = None
    status = "Unknown"
    is_read = not any(
        isinstance(outputs[function], ExtractError) for function in ("erc165", "nothing", "erc721", "erc1155")
    )
    if is_read and total_supply is not None and has_balances:
        status, standard = "Fungible", "ERC-20"
    detail = None if not problems else ", ".join(problems) + "."
    return ContractMetadata(address, status, standard, symbol, name, decimals, total_supply, detail)


def _word(outputs: dict[str, Output], function: str, problems: list[str]) -> int | None:
    output = outputs[function]
    number = _number(output)
    if number is None:
        problems.append(f"{function}() {_shortcoming(output)}")
    return number


def _number(output: Output) -> int | None:
    return None if isinstance(output, ExtractError) else word_to_int(output)


def _shortcoming(output: Output) -> str:
    if output is None:
        return "reverts"
    if isinstance(output, ExtractError):
        return f"cannot be read ({output})"
    return "returns nothing" if output == "0x" else "does not return a single word"


def _text(outputs: dict[str, Output], function: str, longest: int, problems: list[str]) -> str | None:
    """Return a string, or the bytes32 of early tokens, without NUL characters, cut at `longest` characters."""
    output = outputs[function]
    encoded = None if isinstance(output, ExtractError) else decode_text(output)
    if encoded is None:
        is_text = isinstance(output, str) and output != "0x"
        problems.append(f"{function}() {'returns no text' if is_text else _shortcoming(output)}")
        return None
    try:
        text = encoded.decode("utf-8").replace("\0", "")
    except UnicodeDecodeError:
        problems.append(f"{function}() returns bytes that are not UTF-8")
        return None
    if not text:
        problems.append(f"{function}() returns an empty text")
        return None
    if len(text) > longest:
        problems.append(f"{function}() is longer than {longest} characters and is cut")
    return text[:longest]
