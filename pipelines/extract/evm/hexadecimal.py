"""Hex text of nodes: the accepted forms, and their numbers."""

from typing import Annotated

import msgspec

# msgspec checks these forms while decoding. `\Z`, since `$` also accepts a trailing newline.
Quantity = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{1,64}\Z")]
Address = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{40}\Z")]
Hash = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{64}\Z")]
Data = Annotated[str, msgspec.Meta(pattern=r"^0x([0-9a-fA-F]{2})*\Z")]
Bloom = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{512}\Z")]

WORD_CHARACTERS = 64


def word_to_int(data: str | None) -> int | None:
    """Return the number in exactly one 32-byte word of hex data; None for any other length, and for None."""
    return int(data, 16) if data is not None and len(data) == 2 + WORD_CHARACTERS else None
