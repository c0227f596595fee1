"""Total supplies of tokens: how certain each is, and with it the numbers made with it."""

from dataclasses import dataclass

from api.engine.serving import Snapshot
from api.subjects.moments import State, View
from api.subjects.schemas import SupplyStatus
from api.tokens.rows import SupplyRow
from api.values.schemas import CapitalizationStatus


@dataclass(frozen=True, slots=True)
class Supply:
    """A total supply: `raw` in base units, None where it was never read; `whole` in tokens, None without decimals."""

    raw: str | None
    whole: str | None
    status: SupplyStatus

    @property
    def shown(self) -> str | None:
        """In whole tokens; in base units when the decimals are unknown."""
        return self.whole or self.raw

    @property
    def base_units(self) -> int | None:
        """`raw` as a number."""
        return None if self.raw is None else int(self.raw)

    @property
    def figure_status(self) -> SupplyStatus:
        """The status of shares of it: of a supply of zero there are none, confirmed or not."""
        return "ZeroSupply" if self.raw == "0" else self.status

    def value_status(self, status: CapitalizationStatus) -> CapitalizationStatus:
        """Return the status of its value: a value of an unconfirmed supply is `Unconfirmed` itself.

        Args:
            status: of the price and the decimals.
        """
        return "Unconfirmed" if status == "Priced" and self.status == "Unconfirmed" else status


UNKNOWN = Supply(None, None, "Unknown")
NOTHING = Supply("0", "0", "ZeroSupply")
"""Before the contract was there."""


def current_supply(view: View) -> Supply:
    """Return the supply at the newest covered block."""
    facts = view.token
    return Supply(facts.total_supply_raw, facts.total_supply, facts.total_supply_status) if facts else UNKNOWN


def supply_at(snapshot: Snapshot, view: View, state: State) -> Supply:
    """Return the supply at a moment."""
    return to_supply(supply_row(snapshot, view, state.first_block, state.block_number))


def to_supply(row: SupplyRow | None) -> Supply:
    """Return the supply of a row; None is one that was never read."""
    return Supply(row.total_supply_raw, row.total_supply, row.supply_status) if row else UNKNOWN


def supply_row(snapshot: Snapshot, view: View, first_block: int, block_number: int) -> SupplyRow | None:
    """Return the row of the supply at a block of the covered range that begins with `first_block`."""
    return snapshot.row("supply_as_of", SupplyRow, **view.keys, first_block=first_block, block_number=block_number)
