"""Families of networks in the control store: the form of their addresses and of their networks' definitions.

A new family adds one module beside `evm`, one line to `_CODECS` and its table to `AnyTable`. How a family is collected
does not go here.
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from control.networks import descriptors, evm, utxo
from control.networks.addresses import KEYS, WalletAddress
from control.networks.data_sets import FormShape
from control.networks.descriptors import LONGEST as LONGEST
from control.networks.descriptors import SCAN_RANGE as SCAN_RANGE
from control.networks.descriptors import WalletKeys as WalletKeys
from control.networks.private_keys import refuse_private_keys
from control.networks.tables import FamilyDefinition, NetworkTable


class AddressCodec(Protocol):
    """Reads and shows the addresses of one family."""

    pattern: str
    """Pattern (JSON Schema, without its ends) of the texts that may be an address."""

    address_format: str
    """The form of an address, a phrase for people."""

    nobody: str | None
    """The stored form of the address without an owner; None: the family has none."""

    burns: frozenset[str]
    """Stored addresses that nobody can send from, as the users of these networks know them."""

    has_tokens: bool
    """False: the family's networks have no asset but the native one."""

    data_set_forms: Mapping[str, FormShape]
    """Forms of files from which the past of these networks can be read, by name; empty where there is none."""

    def parse(self, text: str) -> str:
        """Return the stored canonical form of an address.

        Raises:
            InvalidAddress: the text is no address of this family; says why and the fix.
        """

    def present(self, stored: str) -> str:
        """Return the form in which answers show a stored address."""


_CODECS: dict[str, AddressCodec] = {"evm": evm.EvmAddressCodec(), "utxo": utxo.UtxoAddressCodec()}

FAMILIES = tuple(_CODECS)

ADDRESS_PATTERN = "|".join(codec.pattern for codec in _CODECS.values())
"""Pattern (JSON Schema, without its ends) of the addresses of all families."""
WALLET_PATTERN = f"{ADDRESS_PATTERN}|{descriptors.PATTERN}"
"""The same of the addresses and keys of wallets, which have at most `LONGEST` characters."""
NOBODIES = tuple(codec.nobody for codec in _CODECS.values() if codec.nobody is not None)
AnyTable: TypeAlias = evm.EvmTable | utxo.UtxoTable
"""A network's definition in the file: one of the families' tables, by its tag."""


def codec_for(family: str) -> AddressCodec:
    """Return the address codec of a family.

    Raises:
        KeyError: no such family; definitions are checked against `FAMILIES` when they are loaded.
    """
    return _CODECS[family]


def parse_address(family: str, own: FamilyDefinition, text: str) -> str:
    """Return the stored form of an address on a network.

    Args:
        family: the network's family.
        own: its fields of the network's definition.
        text: the address in any form that the network accepts.

    Raises:
        InvalidAddress: the text is no address of this network; says why and the fix.
    """
    return own.address(codec_for(family).parse(text))


def parse_keys(own: FamilyDefinition, text: str) -> WalletKeys | None:
    """Return the keys that a text means on a network; None if it means an address, or the family has no keys.

    Args:
        own: the family's fields of the network's definition.
        text: a descriptor or an extended public key, in any spelling.

    Raises:
        InvalidAddress: the text has a private key, or is not right; the message says why and never repeats keys.
    """
    refuse_private_keys(text)
    if isinstance(own, utxo.UtxoDefinition) and descriptors.may_be_keys(text):
        return descriptors.parse_keys(text, own)
    return None


def parse_wallet(family: str, own: FamilyDefinition, text: str) -> WalletAddress:
    """Return the stored form of a wallet's address or keys; arguments and errors as `parse_address`, `parse_keys`.

    A descriptor of one script is stored as the address of the script, so that both spellings are one wallet.
    """
    keys = parse_keys(own, text)
    if keys is None:
        return WalletAddress(parse_address(family, own, text))
    if not keys.is_ranged and keys.branches == 1:
        return WalletAddress(keys.address(0, 0))
    return WalletAddress(KEYS + keys.identity, keys.descriptor, keys.shortened)


def family_of_table(table: NetworkTable) -> str:
    """Return the family of the definition."""
    return str(table.__struct_config__.tag)
