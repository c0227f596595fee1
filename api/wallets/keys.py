"""Addresses of a wallet of keys, in the order of branch and index."""

from itertools import islice, product

from api.http.calls import Fetched
from api.http.paging import Key
from api.wallets.schemas import DerivedAddress
from control.networks.families import SCAN_RANGE, WalletKeys


def scan_range(keys: WalletKeys) -> int:
    """Return the number of indices of each branch that are scanned when tracking begins."""
    return SCAN_RANGE if keys.is_ranged else 1


def derive_addresses(keys: WalletKeys, after: Key | None, count: int) -> Fetched[DerivedAddress]:
    """Return at most `count` addresses of the scanned range behind a branch and an index."""
    indices = scan_range(keys)
    first = 0 if after is None else int(after[0]) * indices + int(after[1]) + 1
    places = list(islice(product(range(keys.branches), range(indices)), first, first + count))
    rows = [DerivedAddress(branch=branch, index=index, address=keys.address(branch, index)) for branch, index in places]
    return Fetched(rows, places[-1] if first + count < keys.branches * indices else None)
