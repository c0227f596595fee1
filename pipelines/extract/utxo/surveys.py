"""Surveys: scans of wallets' unspent outputs that are compared with the stored rows before they count.

A scan is the node's bare word. An output that is not stored is compared with its transaction. One that nothing proves
counts when a scan of a later cycle has it too. When the blocks up to the scan are collected, its outputs and its sum
must be those of the stored rows. Where two scans in a row differ from these in the same way, the rows are wrong, and
the wallet is collected again. One scan is enough if it has an unknown output from before the rows: the wallet opens
with the next scan, which must have it too.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import polars as pl

from control.networks.definitions import Network
from pipelines.extract.errors import ExtractError, MalformedAnswer, StateUnavailable
from pipelines.extract.family import StoredRows
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.extract.units import Unit, UnreadUnits
from pipelines.extract.utxo.definition import own_definition
from pipelines.extract.utxo.dialect import SCAN_CALL
from pipelines.extract.utxo.prevouts import Claim, find_unproven, key_of, outpoint
from pipelines.extract.utxo.scans import Scan, Unspent, scan
from pipelines.extract.utxo.watched import Watched, watch
from pipelines.tables.utxo import UTXO_OPENINGS

_WANTED = UTXO_OPENINGS.schema("address", "transaction_hash", "output_index", "output_key")


class Survey(NamedTuple):
    """A scan of wallets; `wallets` are those that it counts for."""

    watched: Watched
    scan: Scan
    wallets: frozenset[str]

    def sums(self) -> dict[str, int]:
        """Return the balance of each wallet, in base units."""
        sums = dict.fromkeys(self.wallets, 0)
        for wallet, one in _owned(self):
            sums[wallet] += one.amount
        return sums


def _owned(survey: Survey) -> Iterable[tuple[str, Unspent]]:
    for one in survey.scan.unspent:
        for wallet in survey.wallets.intersection(survey.watched.wallets[one.address]):
            yield wallet, one


def take_survey(
    client: RpcClient, network: Network, wallets: Iterable[str], stored: StoredRows | None, unread: UnreadUnits | None
) -> Survey:
    """Scan wallets at the node's newest block.

    Args:
        network: its definition.
        stored: rows of earlier cycles; None: there are none.
        unread: where wallets are noted for which the scan does not count; None: nothing is noted, and no unproven
            output ever counts.

    Raises:
        ExtractError: as `scan`.
    """
    watched = watch(network, sorted(wallets), stored)
    found = scan(client, watched.scripts, network.native_decimals)
    survey = Survey(watched, found, frozenset(watched.addresses))
    refused: set[str] = set()
    number = found.block_number
    for address, error in found.refused.items():
        for wallet in watched.wallets[address]:
            _note(unread, wallet, "", error)
            refused.add(wallet)
    for wallet, outputs, is_false in _unproven(client, network, survey, stored):
        mark = _mark(outputs)
        # Without names of transactions: all tenants read it.
        if is_false:
            detail = "the scan has an output that its transaction does not have"
            _note(unread, wallet, mark, MalformedAnswer(network.name, SCAN_CALL, number, number, detail))
        elif unread is not None and unread.is_repeated(Unit("scan", wallet, mark)):
            continue
        else:
            detail = "the node cannot prove outputs of a wallet; they count if a second scan has them too"
            _note(unread, wallet, mark, StateUnavailable(network.name, SCAN_CALL, number, number, detail))
        refused.add(wallet)
    counted = survey.wallets - refused
    if unread is not None:
        unread.forget("scan", counted)
    return survey._replace(wallets=counted)


def _unproven(
    client: RpcClient, network: Network, survey: Survey, stored: StoredRows | None
) -> Iterator[tuple[str, list[Unspent], bool]]:
    """Yield wallets with outputs that nothing proves, these outputs, and whether one is false."""
    unstored, own = _unstored(survey, stored), own_definition(network)
    claims = {
        one: Claim(one.transaction, one.position, one.amount, own.script(one.address), one.created)
        for _, one in unstored
    }
    failed = find_unproven(client, own, claims.values(), survey.scan.block_number)
    by_wallet: dict[str, list[Unspent]] = defaultdict(list)
    for wallet, one in unstored:
        if claims[one] in failed:
            by_wallet[wallet].append(one)
    for wallet, outputs in by_wallet.items():
        yield wallet, outputs, any(isinstance(failed[claims[one]], MalformedAnswer) for one in outputs)


def _note(unread: UnreadUnits | None, wallet: str, mark: str, error: ExtractError) -> None:
    if unread is not None:
        unread.failed(Unit("scan", wallet, mark), error, is_proven=False)


def agreeing(network: Network, survey: Survey, stored: StoredRows, unread: UnreadUnits) -> frozenset[str]:
    """Return the wallets of a survey for which the stored rows up to its block give the same outputs and sum.

    Args:
        network: its definition.
        unread: where the others are noted.
    """
    number, sums = survey.scan.block_number, survey.sums()
    wanted = pl.DataFrame({"address": sorted(survey.wallets)}, schema={"address": pl.String})
    rows = stored.find("expected", wanted, block=number).select("address", "from_block", "quantity_raw")
    begun = {wallet: first for wallet, first, _ in rows.iter_rows()}
    strange: dict[str, list[Unspent]] = defaultdict(list)
    for wallet, one in _unstored(survey, stored):
        if wallet in begun:
            strange[wallet].append(one)
    agreed = set(survey.wallets)
    for wallet, first, quantity in rows.iter_rows():
        difference = 0 if quantity is None else sums[wallet] - int(quantity)
        if not difference and wallet not in strange:
            continue
        detail = (
            f"a scan differs from the stored outputs of a wallet: {len(strange[wallet])} outputs are not stored"
            f"{', and the sum is another one' if difference else ''}; no balance is stored until two scans in a row "
            "agree with each other"
        )
        error = MalformedAnswer(network.name, SCAN_CALL, number, number, detail)
        unit = Unit("difference", wallet, _mark(strange[wallet], difference))
        unread.failed(unit, error, is_proven=any(one.created < first for one in strange[wallet]))
        agreed.discard(wallet)
    unread.forget("difference", agreed)
    return frozenset(agreed)


def _unstored(survey: Survey, stored: StoredRows | None) -> list[tuple[str, Unspent]]:
    """Return the outputs without a stored row, each with its wallet."""
    owned = list(_owned(survey))
    if stored is None or not owned:
        return owned
    rows = [
        (wallet, one.transaction, one.position, key_of(outpoint(one.transaction, one.position)))
        for wallet, one in owned
    ]
    wanted = pl.DataFrame(rows, schema=_WANTED, orient="row").with_row_index("place")
    return [owned[place] for place in stored.find("unstored", wanted)["place"]]


def _mark(outputs: Sequence[Unspent], difference: int = 0) -> str:
    """Return a text that is equal for two scans with the same outputs and difference."""
    named = sorted((one.transaction, one.position, one.amount) for one in outputs)
    return hashlib.sha256(repr((named, difference)).encode()).hexdigest()
