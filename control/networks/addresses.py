"""The error of every family's address codec.

The codecs themselves are one module per family, listed in `control.networks.families`.
"""


class InvalidAddress(ValueError):
    """A text is no address of the family; the message says why and the fix."""
