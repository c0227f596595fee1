"""Total supplies of tokens with their statuses, and the statuses of numbers that depend on them."""

from dataclasses import dataclass

from api.engine.serving import Snapshot
from api.subjects.moments import State, View
from api.subjects.schemas import SupplyStatus
from api.tokens.rows import SupplyRow
from api.values.schemas import CapitalizationStatus


@dataclass(frozen=True, slots=True)
class Supply:
    """A total supply: `raw` in base units, None if never read; `whole` in tokens, None if the decimals are unknown."""

    raw: str | None
    whole: str | None
    status: SupplyStatus

    @property
    def shown(self) -> str | None:
        """The supply in whole tokens, or in base units if the decimals are unknown."""
        return self.whole or self.raw

    @property
    def base_units(self) -> int | None:
        """`raw` as a number."""
        return None if self.raw is None else int(self.raw)

    @property
    def figure_status(self) -> SupplyStatus:
        """The status of shares of the supply; a supply of zero has no shares, confirmed or not."""
        return "ZeroSupply" if self.raw == "0" else self.status

    def value_status(self, status: CapitalizationStatus) -> CapitalizationStatus:
        """Return the status of the supply's value; the value of an unconfirmed supply is `Unconfirmed`, too.

        Args:
            status: status that follows from price and decimals.
        """
        return "Unconfirmed" if status == "Priced" and self.status == "Unconfirmed" else status


UNKNOWN = Supply(None, None, "Unknown")
NOTHING = Supply("0", "0", "ZeroSupply")
"""The supply before the creation of the contract."""


def current_supply(view: View) -> Supply:
    """Return the supply at the newest covered block."""
    facts = view.token
    return Supply(facts.total_supply_raw, facts.total_supply, facts.total_supply_status) if facts else UNKNOWN


def supply_at(snapshot: Snapshot, view: View, state: State) -> Supply:
    """Return the supply at a moment."""
    return to_supply(supply_row(snapshot, view, state.first_block, state.block_number))


def to_supply(row: SupplyRow | None) -> Supply:
    """Return the supply of a row; None means that the supply was never read."""
    return Supply(row.total_supply_raw, row.total_supply, row.supply_status) if row else UNKNOWN


def supply_row(snapshot: Snapshot, view: View, first_block: int, block_number: int) -> SupplyRow | None:
    """Return the row of the supply at a block in the covered range that begins with `first_block`."""
    return snapshot.row("supply_as_of", SupplyRow, **view.keys, first_block=first_block, block_number=block_number)
