"""Field types shared by tokens, wallets and their values."""

from typing import Annotated, Literal

from msgspec import Meta

from figures import cap_table

ContractStatus = Annotated[
    Literal["Unknown", "Fungible", "NotFungible", "NoContract"],
    Meta(
        description="Kind of contract that the pipeline found at the address; `Unknown` until it has read the contract."
    ),
]


SupplyStatus = Annotated[
    cap_table.SupplyStatus,
    Meta(
        description="`Observed` and `ZeroSupply`: a reading of the chain confirms the total supply at the moment. "
        "`Unconfirmed`: no reading does; the supply follows from the last reading and the events since. "
        "`Unknown`: it was never read, and is null. A share has the status of its supply."
    ),
]


Behaviour = Annotated[
    Literal["Standard", "Rebasing", "FeeOnTransfer", "NonConforming"],
    Meta(description="How balances change apart from transfers, as readings of the chain show."),
]
