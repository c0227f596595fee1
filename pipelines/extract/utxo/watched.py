"""Output scripts of watched wallets: of single addresses, and of wallets of keys.

A wallet of keys has the scripts of its indices, in ranges of `SCAN_RANGE`. When an output comes within the gap of the
end of its range, it needs a larger range, and all its blocks must be collected again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from control.networks.addresses import KEYS
from control.networks.descriptors import SCAN_RANGE, next_range, parse_keys
from control.networks.utxo import UtxoDefinition
from pipelines.extract.family import StoredRows

_FIRST_RANGE = SCAN_RANGE - 1


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
    """A wallet of keys: `collected_to` and `needed_to` are indices; None before the first collection."""

    wallet: str
    descriptor: str
    collected_to: int | None
    needed_to: int

    @property
    def is_outgrown(self) -> bool:
        """True if rows were collected for too few indices."""
        return self.collected_to is not None and self.needed_to > self.collected_to


def key_ranges(stored: StoredRows | None) -> list[KeyRange]:
    """Return the network's wallets of keys."""
    if stored is None:
        return []
    rows = stored.find("wallet_keys")
    found = rows.select("address", "descriptor", "scanned_to", "highest_used")
    return [
        KeyRange(wallet, descriptor, collected_to, max(_needed_to(highest_used), collected_to or 0))
        for wallet, descriptor, collected_to, highest_used in found.iter_rows()
    ]


def _needed_to(highest_used: int | None) -> int:
    """Return the last index to collect: the end of a range behind the gap."""
    needed = next_range(highest_used, _FIRST_RANGE)
    return _FIRST_RANGE if needed is None else (needed // SCAN_RANGE + 1) * SCAN_RANGE - 1


def watch(own: UtxoDefinition, wallets: Iterable[str], stored: StoredRows | None) -> Watched:
    """Return the scripts of wallets.

    Args:
        wallets: addresses, and wallets of keys as `keys:` and their identity. One that is not configured any more has
            no scripts.
    """
    watched = Watched()
    of_keys = set()
    for wallet in wallets:
        watched.addresses[wallet] = set()
        if wallet.startswith(KEYS):
            of_keys.add(wallet)
        else:
            watched.add(wallet, own.script(wallet), wallet)
    for one in key_ranges(stored) if of_keys else ():
        if one.wallet in of_keys:
            keys = parse_keys(one.descriptor, own)
            watched.ranges[one.wallet] = one.needed_to
            for branch in range(keys.branches):
                for index in range(one.needed_to + 1 if keys.is_ranged else 1):
                    script = keys.script(branch, index)
                    address = own.address_of(script)
                    assert address is not None, "every accepted form has an address"
                    watched.add(one.wallet, script, address)
                    watched.indices[one.wallet, address] = index
    return watched
