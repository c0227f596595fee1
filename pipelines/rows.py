"""What collecting and storing know of a family's rows: where they go, and whose they are."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from pipelines.ranges import BlockRange

Kind: TypeAlias = Literal["token", "wallet", "native"]
"""What is collected of an address.

`token`: its movements; `wallet`: its movements in all tokens; `native`: its movements of the network's own asset.
"""


class Segment(NamedTuple):
    """A range that the same addresses miss: a unit of work."""

    kind: Kind
    covered: BlockRange
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class RowTable:
    """A raw table that a family's rows go to, in the source's form; its rows have block_number and block_hash.

    Attributes:
        name: in the schema `raw`.
        description: one sentence.
        kinds: segments that fill it.
        key: columns that identify a row in its network.
        parties: columns that name wallets whose movement it is; null where nobody's.
        token: the column that names the token; None: rows are of the network's own asset.
    """

    name: str
    description: str
    kinds: frozenset[Kind]
    key: tuple[str, ...]
    parties: tuple[str, ...]
    token: str | None = None

    def addressed(self, kind: Kind) -> tuple[str, ...]:
        """The columns in which the addresses of a segment of that kind stand."""
        if kind != "token":
            return self.parties
        return () if self.token is None else (self.token,)
