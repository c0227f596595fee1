"""Transactions of watched addresses in a range of blocks, part by part.

An input names the output that it spends, not its address. Inputs of watched addresses are recognised by stored outputs
of earlier blocks, and by those of the same part. Where coverage of an address begins, a scan finds its older outputs
that are unspent. Other ones may have been spent before the scan. So up to its block, the outputs of all inputs are read
from the node. If it cannot give them, these movements remain unread.

The row of an address depends on the chain and on the node alone, and never on other watched addresses: a tenant must
not see what others track. So where the node gives no outputs of inputs, all inputs of others count as unknown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from control.networks.definitions import Network
from control.ranges import FIRST_BLOCK, BlockRange
from pipelines.extract.errors import ChainReorganised, ExtractError, MalformedAnswer, StateUnavailable
from pipelines.extract.family import Part, StoredRows
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.extract.utxo.blocks import BLOCK_CALL, Numbered, read_blocks
from pipelines.extract.utxo.definition import own_definition
from pipelines.extract.utxo.dialect import SCAN_CALL
from pipelines.extract.utxo.headers import Numbered as NumberedHeader
from pipelines.extract.utxo.headers import compares_targets, read_hashes, read_header_of
from pipelines.extract.utxo.prevouts import (
    Claim,
    Prevout,
    Source,
    find_unproven,
    index_of,
    key_of,
    outpoint,
    read_prevouts,
)
from pipelines.extract.utxo.serialization import OUTPOINT_BYTES, RawTransaction, shown
from pipelines.extract.utxo.surveys import Survey
from pipelines.extract.utxo.watched import watch
from pipelines.rows import Segment
from pipelines.tables.utxo import UTXO_KEY_RANGES, UTXO_OPENINGS, UTXO_OUTPUTS, UTXO_TRANSACTIONS

# One part holds at most about this many inputs and outputs, some 20 MB: six full blocks of a main network.
ENTRIES_PER_PART = 50_000
# ... and this many blocks, so that a failure at the end of a long range with few rows does not waste all of it.
BLOCKS_PER_PART = 1_000
# ... and about this much time, so that blocks of a slow node are stored before its budget of the cycle is used up.
_SECONDS_PER_PART = 15.0
# Inputs and outputs that the detail of a transaction shows, and addresses of its other side.
MOST_SHOWN = 100
COINBASE_MATURITY = 100
"""Blocks after which the outputs of a coinbase can be spent."""

# OP_RETURN.
_UNSPENDABLE = b"\x6a"
_OUTPUT_KEYS = np.dtype([("key", "<i8"), ("rest", "V28")])
_PROVEN = Prevout(0, b"")
_STORED_OUTPUT = ("address", "transaction_hash", "output_index", "amount_raw")


class _Known(NamedTuple):
    """An output with its amount; the address is None for a script without one."""

    amount: int
    address: str | None
    script: bytes = b""


class _Placed(NamedTuple):
    """A transaction at its place in the chain."""

    numbered: Numbered
    position: int
    transaction: RawTransaction

    def key(self) -> tuple[int, str, int, str]:
        """Return the first columns of its rows."""
        number, block = self.numbered
        return number, block.header.hash, self.position, shown(self.transaction.id)


class _ShownInput(msgspec.Struct, rename="camel"):
    output: str
    address: str | None
    amount_raw: str | None


class _ShownOutput(msgspec.Struct, rename="camel"):
    address: str | None
    amount_raw: str


class _Detail(msgspec.Struct, rename="camel"):
    """The `detail` of a row; lists are cut at `MOST_SHOWN`, the counts are not."""

    header_time: int
    input_count: int
    output_count: int
    inputs: list[_ShownInput]
    outputs: list[_ShownOutput]
    spendable_from_block: int | None


@dataclass(frozen=True)
class _View:
    """A transaction as an address sees it.

    Attributes:
        fee: in base units, 0 for a coinbase; None where an input is unknown.
        senders, recipients: sums by address, in base units.
        payers, payees: addresses, and scripts without one.
        detail: JSON text.
    """

    fee: int | None
    senders: Mapping[str, int]
    recipients: Mapping[str, int]
    payers: Set[str | bytes]
    payees: Set[str | bytes]
    detail: str

    def fee_status(self, own: Set[str], *, is_coinbase: bool) -> str:
        """Return the `fee_status` of the row of a wallet with these addresses."""
        if is_coinbase:
            return "NotPaid"
        if self.fee is None:
            return "NotRead"
        if own.isdisjoint(self.payers):
            return "NotPaid"
        return "Paid" if self.payers <= own else "Shared"


@dataclass
class _Lot:
    """Blocks that become one part."""

    blocks: list[Numbered] = field(default_factory=list)
    entries: int = 0


class OutputCollector:
    """Collects one segment.

    Args:
        client: of the node.
        network: its definition.
        segment: of the kind `native`.
        source: where the node gives the outputs of inputs; None: nowhere.
        stored: reads rows of earlier parts and cycles; None: there are none.
        survey: scans wallets, or returns the scan of this cycle that has them.
    """

    def __init__(
        self,
        client: RpcClient,
        network: Network,
        segment: Segment,
        source: Source | None,
        stored: StoredRows | None,
        survey: Callable[[Set[str]], Survey],
    ) -> None:
        self._client = client
        self._network = network
        self._own = own_definition(network)
        self._segment = segment
        self._source = source
        self._stored = stored
        self._take_survey = survey
        self._watched = watch(network, segment.addresses, stored)
        # Up to this block, older outputs of some address may be spent without being known.
        self._incomplete_to = 0
        self._survey: Survey | None = None

    def parts(self) -> Iterator[Part]:
        """Read the segment; see `pipelines.extract.family.Node.collect`."""
        try:
            openings = self._open()
        except ExtractError as error:
            # Fewer blocks need the same outputs.
            error.is_divisible = False
            raise
        notes = {UTXO_OPENINGS.name: openings, UTXO_KEY_RANGES.name: self._ranges()}
        for lot in self._lots():
            rows, unread = self._read(lot)
            rows |= notes
            notes = {name: frame.clear() for name, frame in notes.items()}
            yield Part(BlockRange(lot.blocks[0].number, lot.blocks[-1].number), rows, unread)

    def _open(self) -> pl.DataFrame:
        """Scan the addresses with unknown outputs before the segment; return their rows of the openings."""
        first = self._segment.covered.first
        if first <= FIRST_BLOCK:
            return pl.DataFrame(schema=UTXO_OPENINGS.row_schema)
        known = known_since(self._segment, self._stored)
        unknown = set(self._segment.addresses) - known.keys()
        if unknown:
            self._survey = self._take_survey(unknown)
            number = self._survey.scan.block_number
            if not unknown <= self._survey.wallets:
                detail = "outputs of a wallet are not proven yet"
                raise StateUnavailable(self._network.name, SCAN_CALL, number, number, detail)
            known |= dict.fromkeys(unknown, number)
        self._incomplete_to = max(known.values())
        return self._openings(unknown)

    def _first(self) -> tuple[int, str]:
        """Return number and hash of the segment's first block."""
        first = self._segment.covered.first
        return first, read_hashes(self._client, [first])[0]

    def _ranges(self) -> pl.DataFrame:
        ranges = self._watched.ranges
        rows = [(*self._first(), *one) for one in sorted(ranges.items())] if ranges else []
        return pl.DataFrame(rows, schema=UTXO_KEY_RANGES.row_schema, orient="row")

    def _openings(self, wallets: set[str]) -> pl.DataFrame:
        rows: list[tuple[object, ...]] = []
        if self._survey is not None:
            first, first_hash = self._first()
            number, hash_, unspent, _ = self._survey.scan
            sums = self._survey.sums()
            for one in unspent:
                if one.created < first:
                    key = key_of(outpoint(one.transaction, one.position))
                    found = (number, one.transaction, one.position, key, str(one.amount))
                    for wallet in wallets.intersection(self._survey.watched.wallets[one.address]):
                        rows.append((first, first_hash, wallet, *found, *self._of_keys(wallet, one.address)))
            key = key_of(bytes.fromhex(hash_)[::-1])
            rows += [
                (first, first_hash, wallet, number, hash_, -1, key, str(sums[wallet]), None, None)
                for wallet in sorted(wallets)
            ]
        return pl.DataFrame(rows, schema=UTXO_OPENINGS.row_schema, orient="row")

    def _earlier(self) -> list[NumberedHeader]:
        """Return the newest stored header before the segment, or block 0; none where targets are not compared."""
        if not compares_targets(self._network):
            return []
        number, hash_ = 0, self._own.genesis_hash
        if self._stored is not None:
            found = self._stored.find("newest_before", before=self._segment.covered.first)
            number, hash_ = next(found.iter_rows(), (number, hash_))
        return [NumberedHeader(number, read_header_of(self._client, self._network, number, hash_))]

    def _lots(self) -> Iterator[_Lot]:
        lot, began = _Lot(), self._client.clock()
        try:
            for numbered in read_blocks(self._client, self._network, self._segment.covered, self._earlier()):
                self._check_scan(numbered)
                lot.blocks.append(numbered)
                lot.entries += sum(len(one.inputs) + len(one.outputs) for one in numbered.block.transactions)
                is_late = self._client.clock() - began >= _SECONDS_PER_PART
                if lot.entries >= ENTRIES_PER_PART or len(lot.blocks) >= BLOCKS_PER_PART or is_late:
                    yield lot
                    lot, began = _Lot(), self._client.clock()
        except ExtractError:
            if lot.blocks:
                yield lot
            raise
        if lot.blocks:
            yield lot

    def _check_scan(self, numbered: Numbered) -> None:
        """Check that the scanned block is the collected one.

        Raises:
            ChainReorganised: it left the chain.
        """
        number, block = numbered
        if self._survey is None:
            return
        scanned = self._survey.scan
        if scanned.block_number == number and scanned.block_hash != block.header.hash:
            detail = f"block {number} left the chain after its outputs were scanned"
            raise ChainReorganised(self._network.name, SCAN_CALL, number, number, detail, block_number=number)

    def _read(self, lot: _Lot) -> tuple[dict[str, pl.DataFrame], list[ExtractError]]:
        made = {one.id: one for _, block in lot.blocks for one in block.transactions}
        known = self._stored_outputs(lot)
        given: dict[bytes, Prevout] = {}
        unread: list[ExtractError] = []
        incomplete = [numbered for numbered in lot.blocks if numbered.number <= self._incomplete_to]
        if incomplete and self._source is None:
            unread.append(self._unread(incomplete))
        elif incomplete:
            given |= self._resolve([(one, one.block.transactions) for one in incomplete], made, known)
        involved: list[_Placed] = []
        by_block: list[tuple[Numbered, list[RawTransaction]]] = []
        for numbered in lot.blocks:
            found = [
                _Placed(numbered, position, transaction)
                for position, transaction in enumerate(numbered.block.transactions)
                if self._is_involved(transaction, made, known)
            ]
            involved += found
            by_block.append((numbered, [one.transaction for one in found]))
        if self._source is not None:
            given |= self._resolve(by_block, made, known)
            self._prove(by_block, given)
        transactions: list[tuple[object, ...]] = []
        outputs: list[tuple[object, ...]] = []
        for placed in involved:
            transactions += self._transaction_rows(placed, made, known)
            outputs += self._output_rows(placed)
        return {
            UTXO_TRANSACTIONS.name: pl.DataFrame(transactions, schema=UTXO_TRANSACTIONS.row_schema, orient="row"),
            UTXO_OUTPUTS.name: pl.DataFrame(outputs, schema=UTXO_OUTPUTS.row_schema, orient="row"),
        }, unread

    def _unread(self, incomplete: Sequence[Numbered]) -> StateUnavailable:
        first, last = incomplete[0].number, incomplete[-1].number
        detail = (
            "these blocks may spend outputs from before the collected range, and the node gives no outputs of inputs; "
            "enable its index of transactions, or request history from the first block"
        )
        return StateUnavailable(self._network.name, BLOCK_CALL, first, last, detail)

    def _stored_outputs(self, lot: _Lot) -> dict[bytes, _Known]:
        """Return the stored outputs that inputs of the lot spend, by reference."""
        references = [
            one
            for _, block in lot.blocks
            for transaction in block.transactions
            if not transaction.is_coinbase
            for one in transaction.inputs
        ]
        if not references or self._stored is None:
            return {}
        keys = np.frombuffer(b"".join(references), dtype=_OUTPUT_KEYS)["key"]
        rows = self._stored.find("outputs", pl.DataFrame({"output_key": keys}))
        return {
            outpoint(transaction, index): _Known(int(amount), address)
            for address, transaction, index, amount in rows.select(_STORED_OUTPUT).iter_rows()
        }

    def _resolve(
        self,
        wanted: Sequence[tuple[Numbered, Sequence[RawTransaction]]],
        made: Mapping[bytes, RawTransaction],
        known: dict[bytes, _Known],
    ) -> dict[bytes, Prevout]:
        """Read the unknown outputs of the transactions' inputs from the node, add them to `known`, and return them."""
        assert self._source is not None
        missing = [
            (
                numbered,
                [
                    one
                    for transaction in transactions
                    if not transaction.is_coinbase
                    for one in transaction.inputs
                    if one not in known and one[:32] not in made
                ],
            )
            for numbered, transactions in wanted
        ]
        missing = [(numbered, references) for numbered, references in missing if references]
        found = read_prevouts(self._client, self._source, missing, self._own, self._network.native_decimals)
        known |= {one: self._known((prevout.amount, prevout.script)) for one, prevout in found.items()}
        return found

    def _prove(
        self, by_block: Sequence[tuple[Numbered, Sequence[RawTransaction]]], given: Mapping[bytes, Prevout]
    ) -> None:
        """Prove the outputs that the transactions' inputs spend, where the node has said them without proof.

        Raises:
            MalformedAnswer, StateUnavailable: one is false, or the node cannot prove it.
        """
        for numbered, transactions in by_block:
            claims = []
            for reference in (one for transaction in transactions for one in transaction.inputs):
                amount, script, created = given.get(reference, _PROVEN)
                if created is not None:
                    claims.append(Claim(shown(reference[:32]), index_of(reference), amount, script, created))
            for error in find_unproven(self._client, self._own, claims, numbered.number).values():
                detail = f"an output that block {numbered.number} spends is not proven: {error.detail}"
                raise type(error)(self._network.name, BLOCK_CALL, numbered.number, numbered.number, detail)

    def _known(self, output: tuple[int, bytes]) -> _Known:
        amount, script = output
        return _Known(amount, self._own.address_of(script), script)

    def _spent(
        self, reference: bytes, made: Mapping[bytes, RawTransaction], known: Mapping[bytes, _Known]
    ) -> _Known | None:
        """Return the output that an input spends; None where it is not known."""
        if reference in known:
            return known[reference]
        maker = made.get(reference[:32])
        if maker is None or index_of(reference) >= len(maker.outputs):
            return None
        return self._known(maker.outputs[index_of(reference)])

    def _is_involved(
        self, transaction: RawTransaction, made: Mapping[bytes, RawTransaction], known: Mapping[bytes, _Known]
    ) -> bool:
        if any(script in self._watched.scripts for _, script in transaction.outputs):
            return True
        for reference in transaction.inputs:
            if reference in known or reference[:32] in made:
                output = self._spent(reference, made, known)
                if output is not None and output.address in self._watched.wallets:
                    return True
        return False

    def _output_rows(self, placed: _Placed) -> Iterator[tuple[object, ...]]:
        place, key = placed.key(), key_of(placed.transaction.id)
        for index, (amount, script) in enumerate(placed.transaction.outputs):
            address = self._watched.scripts.get(script)
            if address is not None:
                for wallet in self._watched.wallets[address]:
                    yield (*place, index, key, wallet, str(amount), *self._of_keys(wallet, address))

    def _of_keys(self, wallet: str, address: str) -> tuple[str | None, int | None]:
        """Return address and index of an output of a wallet of keys; None twice for a single address."""
        index = self._watched.indices.get((wallet, address))
        return (None, None) if index is None else (address, index)

    def _transaction_rows(
        self, placed: _Placed, made: Mapping[bytes, RawTransaction], known: Mapping[bytes, _Known]
    ) -> Iterator[tuple[object, ...]]:
        """Yield a row for each watched wallet in the transaction."""
        transaction, place = placed.transaction, placed.key()
        is_coinbase = transaction.is_coinbase
        inputs = [] if is_coinbase else [self._spent(one, made, known) for one in transaction.inputs]
        outputs = [self._known(one) for one in transaction.outputs]
        view = self._view(placed, inputs, outputs)
        parties = view.senders.keys() | view.recipients.keys()
        wallets = {wallet for address in parties for wallet in self._watched.wallets.get(address, ())}
        for wallet in sorted(wallets):
            own = self._watched.addresses[wallet]
            if self._source is None:
                known_inputs = [one if one is not None and one.address in own else None for one in inputs]
                view = self._view(placed, known_inputs, outputs)
            is_sender = not own.isdisjoint(view.senders)
            others = (view.payees if is_sender else view.payers) - own
            is_read = view.fee is not None or is_sender
            fee_status = view.fee_status(own, is_coinbase=is_coinbase)
            yield (
                *place,
                wallet,
                is_coinbase,
                str(sum(view.senders[address] for address in view.senders.keys() & own)),
                str(sum(view.recipients[address] for address in view.recipients.keys() & own)),
                str(view.fee) if fee_status == "Paid" else None,
                fee_status,
                sorted(one for one in others if isinstance(one, str))[:MOST_SHOWN] if is_read else None,
                len(others) if is_read else None,
                view.detail,
            )

    def _view(self, placed: _Placed, inputs: Sequence[_Known | None], outputs: Sequence[_Known]) -> _View:
        return _View(
            fee=self._fee(placed.numbered, placed.transaction, inputs, outputs),
            senders=_sums(inputs),
            recipients=_sums(outputs),
            payers=_parties(inputs),
            payees=_parties(outputs),
            detail=msgspec.json.encode(_detail(placed.numbered, placed.transaction, inputs, outputs)).decode(),
        )

    def _fee(
        self,
        numbered: Numbered,
        transaction: RawTransaction,
        inputs: Sequence[_Known | None],
        outputs: Sequence[_Known],
    ) -> int | None:
        """Return the fee in base units, 0 for a coinbase; None where an input is unknown.

        Raises:
            MalformedAnswer: the outputs are worth more than the inputs.
        """
        if transaction.is_coinbase:
            return 0
        fee = -sum(one.amount for one in outputs)
        for one in inputs:
            if one is None:
                return None
            fee += one.amount
        if fee < 0:
            detail = f"transaction {shown(transaction.id)} pays out more than its inputs: a spent output is false"
            raise MalformedAnswer(self._network.name, BLOCK_CALL, numbered.number, numbered.number, detail)
        return fee


def known_since(segment: Segment, stored: StoredRows | None) -> dict[str, int]:
    """Return the addresses with known unspent outputs before a segment, each with the block of its last scan.

    Where the coverage before the segment begins with the chain, the block is 0.
    """
    if stored is None:
        return {}
    wanted = pl.DataFrame({"address": segment.addresses})
    rows = stored.find("known_since", wanted, before=segment.covered.first - 1)
    return dict(rows.select("address", "known_since").iter_rows())


def _sums(entries: Sequence[_Known | None]) -> dict[str, int]:
    """Return the sum of each address, in base units."""
    sums: dict[str, int] = {}
    for one in entries:
        if one is not None and one.address is not None:
            sums[one.address] = sums.get(one.address, 0) + one.amount
    return sums


def _parties(entries: Sequence[_Known | None]) -> set[str | bytes]:
    """Return the owners of spendable outputs: addresses, and scripts without one."""
    return {
        one.script if one.address is None else one.address
        for one in entries
        if one is not None and not one.script.startswith(_UNSPENDABLE)
    }


def _detail(
    numbered: Numbered, transaction: RawTransaction, inputs: Sequence[_Known | None], outputs: Sequence[_Known]
) -> _Detail:
    return _Detail(
        header_time=numbered.block.header.time,
        input_count=len(inputs),
        output_count=len(outputs),
        inputs=[
            _ShownInput(
                f"{shown(reference[:32])}:{index_of(reference)}",
                None if one is None else one.address,
                None if one is None else str(one.amount),
            )
            for reference, one in zip(transaction.inputs[:MOST_SHOWN], inputs[:MOST_SHOWN], strict=False)
        ],
        outputs=[_ShownOutput(one.address, str(one.amount)) for one in outputs[:MOST_SHOWN]],
        spendable_from_block=numbered.number + COINBASE_MATURITY if transaction.is_coinbase else None,
    )


assert _OUTPUT_KEYS.itemsize == OUTPOINT_BYTES
