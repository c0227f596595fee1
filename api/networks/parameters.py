"""Parameters of networks and ledgers."""

from typing import Annotated

from api.examples import (
    EXAMPLE_LEDGER,
    EXAMPLE_NETWORK,
)
from api.http.parameters import (
    in_path,
)
from control.inputs import (
    LEDGER,
    NETWORK,
)

NetworkName = Annotated[str, in_path("name", "Name of the network.", EXAMPLE_NETWORK, NETWORK)]


LedgerName = Annotated[str, in_path("name", "Name or id of the ledger.", EXAMPLE_LEDGER, LEDGER)]
