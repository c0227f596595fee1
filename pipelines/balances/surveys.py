"""Balances that a node reads for its newest block alone, in minutes: when, of which wallets, and at which block."""

from collections.abc import Set
from datetime import timedelta
from typing import NamedTuple

from pipelines.chain.segments import Collector
from pipelines.extract.errors import OF_ONE_UNIT, StateUnavailable
from pipelines.extract.family import SLOW_BALANCES, Header
from pipelines.extract.units import UnitKind
from pipelines.raw.database import named

# Time between two surveys of a wallet, by the chain's clock.
_INTERVAL = timedelta(days=1)
_KINDS: tuple[UnitKind, ...] = ("scan", "difference")


class Surveyed(NamedTuple):
    """Wallets with balances from the node, and the block of these balances."""

    head: Header
    wallets: Set[str]


def survey(collector: Collector, head: Header, unopened: Set[str]) -> Surveyed | None:
    """Have the node read the balances that are due; None where none is, or where it cannot now.

    New wallets are read at once and by themselves, and again in the next cycle: a second answer shows omissions
    of the first. All wallets are read once a day. One that failed before is left out until its next try. A failure is
    noted, and nothing else waits for it.

    Args:
        head: the newest block of this cycle. The survey's block may be later; it is never earlier.
        unopened: wallets without rows, which are collected after a survey only.

    Raises:
        ChainReorganised: the chain changed meanwhile.
        BudgetSpent: the time of the network is used up.
    """
    if SLOW_BALANCES not in collector.capabilities:
        return None
    day_ago = head.time.replace(tzinfo=None) - _INTERVAL
    parameters = {"network": collector.network, "head": head.number, "day_ago": day_ago}
    tracked = collector.connection.execute(*named("survey_due", parameters)).fetchall()
    unread, waiting = collector.unread, set[str]()
    for kind in _KINDS:
        unread.forget(kind, unread.addresses_of(kind) - {address for address, *_ in tracked} - unopened)
        waiting |= unread.addresses_of(kind, is_waiting=True)
    ready = [row for row in tracked if row[0] not in waiting]
    is_daily = any(is_old for _, _, is_old in ready)
    due = {address for address, is_missing, _ in ready if is_daily or is_missing} | (unopened - waiting)
    if not due:
        return None
    try:
        found = collector.node.survey(due)
    except OF_ONE_UNIT as error:
        collector.note(error, f"balances are read in a later cycle: {error}")
        return None
    if found.number < head.number:
        detail = f"balances are of block {found.number}, before the head {head.number}; they are read in a later cycle"
        earlier = StateUnavailable(collector.network, collector.node.header_call, found.number, found.number, detail)
        collector.note(earlier, str(earlier))
        return None
    return Surveyed(found, due)
