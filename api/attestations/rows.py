"""Result rows of this folder's queries: one struct per query; its fields have the names and order of the columns."""

from datetime import datetime
from typing import Literal

from api.engine.rows import Row


class AttestationRow(Row, frozen=True):
    """`attestations`: an attestation of a subject."""

    attestation_number: int
    block_number: int
    block_hash: str
    block_time: datetime | None
    is_automatic: bool
    status: Literal["Reconciled", "Adjusted", "Incomplete"]
    balance_count: int
    read_count: int
    difference_count: int
    unconfirmed_count: int
    balances_raw: str | None
    balances: str | None
    total_supply_raw: str | None
    total_supply: str | None
    supply_difference_raw: str | None
    supply_difference: str | None
    attested_at: datetime
    superseded_by: Literal["NewHolder", "FilledGap", "ChainReset", "OtherBalance"] | None


class StandingAttestationRow(Row, frozen=True):
    """`standing_attestations`: a block of a subject with an attestation that is not superseded."""

    block_number: int


class UnconfirmedBalancesRow(Row, frozen=True):
    """`unconfirmed_balances`: number of the balances that an attestation of a block would read."""

    balance_count: int
    is_supply_read: bool
