"""Results and the error of reading an address of any family.

The codecs themselves are one module per family, listed in `control.networks.families`.
"""

from dataclasses import dataclass, field


class InvalidAddress(ValueError):
    """A text is no address of the family; the message says why and the fix."""


@dataclass(frozen=True, slots=True)
class WalletAddress:
    """The address of a wallet in stored form.

    Args:
        address: a canonical address, or `KEYS` and the identity of the wallet's keys.
        descriptor: canonical descriptor of the keys; None for a single address. No answer, log or export has it.
        shown_as: the descriptor with shortened keys; None for a single address, which its codec shows.
    """

    address: str
    descriptor: str | None = field(default=None, repr=False)
    shown_as: str | None = None


KEYS = "keys:"
"""Start of the stored address of a wallet of keys; the identity of the keys follows."""
