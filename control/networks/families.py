"""What a family of networks decides in the control store: the form of its addresses.

A new family adds one module beside `evm` and one line to `_CODECS`. How a family is collected does not go here.
"""

from typing import Protocol

from control.networks import evm


class AddressCodec(Protocol):
    """Reads and shows the addresses of one family."""

    address_format: str
    """One phrase for people: what an address looks like."""

    nobody: str | None
    """The stored form of the address that stands for nobody; None: the family has none."""

    def parse(self, text: str) -> str:
        """Return the stored canonical form of an address.

        Raises:
            InvalidAddress: the text is no address of this family; says why and the fix.
        """

    def present(self, stored: str) -> str:
        """Return the form in which answers show a stored address."""


_CODECS: dict[str, AddressCodec] = {"evm": evm.EvmAddressCodec()}

FAMILIES = tuple(_CODECS)
NOBODIES = tuple(codec.nobody for codec in _CODECS.values() if codec.nobody is not None)


def codec_for(family: str) -> AddressCodec:
    """Return the address codec of a family.

    Raises:
        KeyError: no such family; definitions are checked against `FAMILIES` when they are loaded.
    """
    return _CODECS[family]
