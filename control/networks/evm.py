"""Addresses of EVM networks (20 bytes in hexadecimal, shown with the checksum of EIP-55), and their own definitions.

Source: https://eips.ethereum.org/EIPS/eip-55
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated

from eth_utils.address import to_checksum_address

from control.errors import shortened
from control.networks.addresses import InvalidAddress
from control.networks.data_sets import FormShape
from control.networks.private_keys import refuse_private_keys
from control.networks.tables import NetworkTable
from control.toml_files import within

MULTICALL3_ADDRESS = "0xca11bde05977b3631167028862be2a173976ca11"
"""Multicall3 at the address it has on almost every EVM network. Source: https://www.multicall3.com/"""

# Columns that a data set of the form `columns` names.
_TRANSFER_COLUMNS = (
    "block_number",
    "block_hash",
    "block_time",
    "transaction_index",
    "transaction_hash",
    "log_index",
    "token_address",
    "from_address",
    "to_address",
    "amount",
)
_LARGEST_CHAIN_ID = 2**53 - 1  # an id beyond it would lose digits in JSON clients

_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}")
_SECRET = re.compile("(?:0[xX])?[0-9a-fA-F]{64}")


# One costs 19 us, and the pages of a cap table show the same holders again and again.
@lru_cache(maxsize=131_072)
def to_checksum(stored: str) -> str:
    """Return the EIP-55 form of a lower-case 0x address."""
    return str(to_checksum_address(stored))


class EvmAddressCodec:
    """Stores addresses as lower-case 0x text and shows them with their checksum."""

    pattern = _ADDRESS.pattern
    address_format = "0x and 40 hexadecimal digits; mixed case must carry the EIP-55 checksum"
    nobody: str | None = "0x" + 40 * "0"
    burns = frozenset({"0x" + 40 * "0", "0x" + 36 * "0" + "dead"})
    has_tokens = True
    data_set_forms: Mapping[str, FormShape] = MappingProxyType(
        {
            "aws": FormShape(("logs",)),
            "cryo-logs": FormShape(("logs", "blocks")),
            "cryo-transfers": FormShape(("erc20_transfers", "blocks")),
            "ethereum-etl": FormShape(("logs", "blocks")),
            "columns": FormShape(("transfers",), _TRANSFER_COLUMNS),
            "ledgermart": FormShape(("token_transfers", "transactions", "internal_transfers", "coverage")),
        }
    )

    def parse(self, text: str) -> str:
        """Return the lower-case 0x form; one case throughout is accepted, mixed case only with the right checksum.

        Raises:
            InvalidAddress: wrong form or wrong checksum.
        """
        if _ADDRESS.fullmatch(text) is None:
            # The error below repeats the text.
            refuse_private_keys(text)
            if _SECRET.fullmatch(text):
                raise InvalidAddress("a text of 64 hexadecimal digits is a hash or a private key; give an address")
            raise InvalidAddress(f"{shortened(ascii(text))} is not an EVM address; write 0x and 40 hexadecimal digits")
        digits = text[2:]
        stored = "0x" + digits.lower()
        if digits not in (digits.lower(), digits.upper()) and to_checksum(stored)[2:] != digits:
            raise InvalidAddress(
                f"{text} has a wrong checksum, so a character may be mistyped; "
                "check it, or write it in lower case to go without a checksum"
            )
        return stored

    def present(self, stored: str) -> str:
        """Return the EIP-55 form of a stored address."""
        return to_checksum(stored)


@dataclass(frozen=True, slots=True)
class EvmDefinition:
    """Fields of the definition of an EVM network; `multicall_address` in stored form, None where there is none."""

    chain_id: int
    multicall_address: str | None
    max_log_range: int | None

    @property
    def identity(self) -> str:
        return str(self.chain_id)

    def address(self, stored: str) -> str:
        """Return the address unchanged: all networks of the family have the same addresses."""
        return stored


class EvmTable(NetworkTable, frozen=True, kw_only=True, tag="evm"):
    """An EVM network in the file of definitions."""

    chain_id: Annotated[int, within(1, _LARGEST_CHAIN_ID)]
    multicall_address: str = MULTICALL3_ADDRESS
    max_log_range: Annotated[int, within(1, 1_000_000_000)] | None = None

    def own(self) -> EvmDefinition:
        try:
            # An empty text says that the network has no such contract; TOML has no null.
            multicall = EvmAddressCodec().parse(self.multicall_address) if self.multicall_address else None
        except InvalidAddress as error:
            raise ValueError(f"field 'multicall_address': is invalid: {error}") from error
        return EvmDefinition(self.chain_id, multicall, self.max_log_range)
