"""Output scripts of watched wallets: of single addresses, and of wallets of keys.

A wallet of keys has the scripts of its indices, in ranges of `SCAN_RANGE`. When an output comes within the gap of the
end of its range, it needs a larger range, and all its blocks must be collected again.

Scripts of keys are derived once and stored. A wallet is collected when those of its first range are stored.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from control.networks.addresses import KEYS
from control.networks.definitions import Network
from control.networks.descriptors import SCAN_RANGE, next_range, parse_keys
from pipelines.extract.budget import Budget
from pipelines.extract.errors import BudgetSpent
from pipelines.extract.family import StoredRows
from pipelines.extract.utxo.definition import own_definition
from pipelines.tables.utxo import UTXO_SCRIPTS

_FIRST_RANGE = SCAN_RANGE - 1
_CALL = "scripts of wallets of keys"
_SCRIPTS_PER_PART = 1_000
# Share of a cycle's time in which scripts of new wallets and of larger ranges are derived.
_SHARE = 0.1


@dataclass(frozen=True)
class Watched:
    """Scripts of some wallets.

    Attributes:
        scripts: addresses by script.
        wallets: by address, the wallets that it belongs to; a single address is a wallet of its own.
        addresses: by wallet, its addresses.
        indices: by wallet of keys and address, the index.
        ranges: by wallet of keys, the last index of its scripts.
    """

    scripts: dict[bytes, str] = field(default_factory=dict)
    wallets: dict[str, list[str]] = field(default_factory=dict)
    addresses: dict[str, set[str]] = field(default_factory=dict)
    indices: dict[tuple[str, str], int] = field(default_factory=dict)
    ranges: dict[str, int] = field(default_factory=dict)

    def add(self, wallet: str, script: bytes, address: str) -> None:
        """Add an address of a wallet."""
        self.scripts[script] = address
        self.wallets.setdefault(address, []).append(wallet)
        self.addresses.setdefault(wallet, set()).add(address)


@dataclass(frozen=True)
class KeyRange:
    """A wallet of keys.

    Attributes:
        collected_to: last index for which rows were collected; None before the first collection.
        needed_to: last index that is needed.
        stored_indices: number of indices, from 0 on, with stored scripts in every branch.
        is_viewed: some tenant's view has blocks for it.
        tenant_id: one of its tenants.
    """

    wallet: str
    descriptor: str
    collected_to: int | None
    needed_to: int
    stored_indices: int
    is_viewed: bool
    tenant_id: str

    @property
    def needed_indices(self) -> int:
        """Number of indices that are needed: one if no child of its keys follows."""
        return self.needed_to + 1 if "*" in self.descriptor else 1

    @property
    def derived_to(self) -> int:
        """Last index of the ranges with stored scripts; -1: the first range lacks some."""
        if self.stored_indices >= self.needed_indices:
            return self.needed_to
        return self.stored_indices // SCAN_RANGE * SCAN_RANGE - 1

    @property
    def is_ready(self) -> bool:
        """True if scripts are stored for all that was collected, and at least for the first range."""
        return self.derived_to >= (_FIRST_RANGE if self.collected_to is None else self.collected_to)

    @property
    def is_outgrown(self) -> bool:
        """True if rows were collected for too few indices."""
        return self.collected_to is not None and self.derived_to > self.collected_to

    @property
    def is_awaited(self) -> bool:
        """True if the network cannot be collected before its scripts are stored."""
        return self.is_viewed and not self.is_ready


def key_ranges(stored: StoredRows | None) -> list[KeyRange]:
    """Return the network's wallets of keys, in the order of their creation."""
    if stored is None:
        return []
    rows = stored.find("wallet_keys").select(
        "address", "descriptor", "scanned_to", "highest_used", "stored_indices", "is_viewed", "tenant_id"
    )
    return [
        KeyRange(wallet, descriptor, collected_to, max(_needed_to(highest_used), collected_to or 0), *rest)
        for wallet, descriptor, collected_to, highest_used, *rest in rows.iter_rows()
    ]


def _needed_to(highest_used: int | None) -> int:
    """Return the last index to collect: the end of a range behind the gap."""
    needed = next_range(highest_used, _FIRST_RANGE)
    return _FIRST_RANGE if needed is None else (needed // SCAN_RANGE + 1) * SCAN_RANGE - 1


def derive_scripts(network: Network, ranges: Iterable[KeyRange], budget: Budget | None) -> Iterator[pl.DataFrame]:
    """Derive the scripts that are not stored yet, in parts with all branches of their indices.

    Awaited wallets come first. The others have a share of the cycle's time, in turns of their tenants: one tenant with
    many wallets holds up neither the network nor the new wallets of other tenants.

    Args:
        network: its definition.
        ranges: its wallets of keys.
        budget: of the cycle; None: without bound.

    Returns:
        Rows of UTXO_SCRIPTS without the network.

    Raises:
        BudgetSpent: the time is used up, and awaited wallets lack scripts; the parts before are derived.
    """
    share = None if budget is None else budget.share(_SHARE)
    for one in _in_turns(ranges):
        limit = budget if one.is_awaited else share
        yield from _derive(network, one, limit)
        detail = None if limit is None else limit.overrun()
        if detail is not None and one.is_awaited:
            raise BudgetSpent(network.name, _CALL, detail=detail)
        if detail is not None:
            return


def _in_turns(ranges: Iterable[KeyRange]) -> list[KeyRange]:
    """Return the wallets that lack scripts: awaited ones, then one of each tenant, then the second ones and so on."""
    turns = Counter[str]()
    ordered = []
    for one in ranges:
        if one.stored_indices < one.needed_indices:
            ordered.append((not one.is_awaited, turns[one.tenant_id], one))
            turns[one.tenant_id] += 1
    return [one for *_, one in sorted(ordered, key=lambda each: each[:2])]


def _derive(network: Network, one: KeyRange, limit: Budget | None) -> Iterator[pl.DataFrame]:
    """Derive the missing scripts of a wallet until a budget is used up."""
    own = own_definition(network)
    keys = parse_keys(one.descriptor, own)
    rows: list[tuple[str, int, int, str, str]] = []
    schema = UTXO_SCRIPTS.schema_without("network")
    for index in range(one.stored_indices, one.needed_indices):
        if limit is not None and limit.overrun() is not None:
            break
        for branch in range(keys.branches):
            script = keys.script(branch, index)
            address = own.address_of(script)
            assert address is not None, "every accepted form has an address"
            rows.append((one.wallet, branch, index, script.hex(), address))
        if len(rows) >= _SCRIPTS_PER_PART:
            yield pl.DataFrame(rows, schema=schema, orient="row")
            rows.clear()
    if rows:
        yield pl.DataFrame(rows, schema=schema, orient="row")


def watch(network: Network, wallets: Sequence[str], stored: StoredRows | None) -> Watched:
    """Return the scripts of wallets.

    Args:
        network: its definition.
        wallets: addresses, and wallets of keys as `keys:` and their identity. One that is not configured any more has
            no scripts.
        stored: reads stored scripts; None: there are none.

    Raises:
        BudgetSpent: scripts of a wallet of keys are not derived yet.
    """
    own = own_definition(network)
    watched = Watched(addresses={wallet: set() for wallet in wallets})
    of_keys = {wallet for wallet in wallets if wallet.startswith(KEYS)}
    for wallet in wallets:
        if wallet not in of_keys:
            watched.add(wallet, own.script(wallet), wallet)
    if stored is None or not of_keys:
        return watched
    ranges = [one for one in key_ranges(stored) if one.wallet in of_keys]
    if not all(one.is_ready for one in ranges):
        detail = "addresses of a wallet of keys are not derived yet; the next cycles continue"
        raise BudgetSpent(network.name, _CALL, detail=detail)
    watched.ranges.update((one.wallet, one.derived_to) for one in ranges)
    wanted = pl.DataFrame({"address": watched.ranges.keys(), "last_index": watched.ranges.values()})
    for wallet, index, script, address in stored.find("scripts", wanted).iter_rows():
        watched.add(wallet, bytes.fromhex(script), address)
        watched.indices[wallet, address] = index
    return watched
