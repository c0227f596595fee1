"""Expected transactions, fees and balances of a UTXO chain, computed from the node's JSON block by block.

The module uses none of the service's code. Amounts are base units.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.chain.utxo_node import BASE_UNITS, UtxoNode, base_units

# The node's JSON may name the addresses of keys for these, but the output belongs to no address.
_TYPES_WITHOUT_ADDRESS = ("pubkey", "multisig")
_HALVING_BLOCKS = 150
_LONGEST_SCRIPT = 10_000


@dataclass(frozen=True)
class Output:
    """An output of a transaction; `address` is the node's own spelling, or None. `script` is hex text."""

    txid: str
    index: int
    amount: int
    address: str | None
    script: str
    type: str

    @property
    def is_spendable(self) -> bool:
        """True if the node keeps the output in its set of unspent outputs."""
        return not self.script.startswith("6a") and len(self.script) <= 2 * _LONGEST_SCRIPT


@dataclass(frozen=True)
class ChainTransaction:
    """A transaction in a block; `index` is its place there. `inputs` are the spent outputs, none for a coinbase."""

    height: int
    index: int
    txid: str
    is_coinbase: bool
    inputs: tuple[Output, ...]
    outputs: tuple[Output, ...]

    @property
    def fee(self) -> int:
        """Inputs less outputs, base units; 0 for a coinbase."""
        return 0 if self.is_coinbase else _total(self.inputs) - _total(self.outputs)

    @cached_property
    def net(self) -> dict[str, int]:
        """Change of the balance of each address in inputs or outputs, base units; may be 0."""
        changes: dict[str, int] = defaultdict(int)
        for sign, outputs in ((-1, self.inputs), (1, self.outputs)):
            for output in outputs:
                if output.address is not None:
                    changes[output.address] += sign * output.amount
        return dict(changes)


class ChainOracle:
    """The truth about a chain, from all blocks of the node's active chain at construction.

    Construction asserts that each input spends an existing output once, no fee is negative, and no coinbase claims more
    than subsidy and fees.

    Attributes:
        head: height of the newest block.
        hashes: block hashes by height.
        times: block times by height, Unix seconds.
        unspent: outputs that the node keeps unspent, by (txid, index).
    """

    def __init__(self, node: UtxoNode) -> None:
        self.node = node
        self.head = node.head()
        self.hashes: list[str] = []
        self.times: list[int] = []
        self.unspent: dict[tuple[str, int], Output] = {}
        self._transactions: list[ChainTransaction] = []
        self._by_address: dict[str, list[ChainTransaction]] = defaultdict(list)
        # For each address, heights with a change and the balances since then.
        self._heights: dict[str, list[int]] = defaultdict(list)
        self._balances: dict[str, list[int]] = defaultdict(list)
        for block in node.blocks(0, self.head):
            self._add_block(block)

    def balance(self, address: str, height: int) -> int:
        """Return an address's balance at the end of a block."""
        known = bisect_right(self._heights.get(address, []), height)
        return self._balances[address][known - 1] if known else 0

    def balances(self, height: int) -> dict[str, int]:
        """Return the balance of each address that has one at the end of a block."""
        found = {address: self.balance(address, height) for address in self._heights}
        return {address: amount for address, amount in found.items() if amount}

    def addresses(self) -> set[str]:
        """Return all addresses of the chain."""
        return set(self._by_address)

    def transactions(self, address: str | None = None) -> list[ChainTransaction]:
        """Return the transactions of the chain in order, or those with the address in an input or output."""
        return list(self._transactions if address is None else self._by_address.get(address, []))

    def scan(self, addresses: Iterable[str]) -> dict[str, int]:
        """Return the balances at the tip as the node's own scan of its unspent outputs finds them.

        The node runs one scan at a time; another one meanwhile fails.
        """
        scripts = {
            str(self.node.rpc("validateaddress", address)["scriptPubKey"]): address for address in set(addresses)
        }
        totals = dict.fromkeys(scripts.values(), 0)
        for coin in self._scan(f"addr({address})" for address in totals):
            totals[scripts[coin["scriptPubKey"]]] += base_units(coin["amount"])
        return totals

    def check(self) -> None:
        """Assert that the node's unspent outputs at the tip are exactly those computed here."""
        assert self.node.block_hash(self.node.head()) == self.hashes[-1], "the chain has changed since"
        assert self.scan(self.addresses()) == {one: self.balance(one, self.head) for one in self.addresses()}
        # The node scans for no empty script; the totals below include it.
        scripts = {output.script for output in self.unspent.values()} - {""}
        scanned = {
            (coin["txid"], coin["vout"]): base_units(coin["amount"])
            for coin in self._scan(f"raw({script})" for script in scripts)
        }
        assert scanned == {outpoint: output.amount for outpoint, output in self.unspent.items() if output.script}
        whole = self.node.rpc("gettxoutsetinfo", "none")
        assert (whole["txouts"], base_units(whole["total_amount"])) == (
            len(self.unspent),
            _total(self.unspent.values()),
        )

    def _scan(self, descriptors: Iterable[str]) -> list[dict[str, Any]]:
        answer = self.node.rpc("scantxoutset", "start", list(descriptors))
        assert answer["success"]
        found: list[dict[str, Any]] = answer["unspents"]
        return found

    def _add_block(self, block: dict[str, Any]) -> None:
        height = len(self.hashes)
        assert block["height"] == height
        assert block.get("previousblockhash") == (self.hashes[-1] if self.hashes else None)
        self.hashes.append(block["hash"])
        self.times.append(block["time"])
        changes: dict[str, int] = defaultdict(int)
        fees = 0
        made = []
        for index, entry in enumerate(block["tx"]):
            transaction = self._transaction(height, index, entry)
            made.append(transaction)
            fees += transaction.fee
            for address, change in transaction.net.items():
                changes[address] += change
                self._by_address[address].append(transaction)
        self._transactions += made
        claimed = _total(made[0].outputs)
        assert claimed <= (50 * BASE_UNITS >> (height // _HALVING_BLOCKS)) + fees, f"block {height} claims {claimed}"
        for address, change in changes.items():
            before = self._balances[address][-1] if self._balances[address] else 0
            assert before + change >= 0, f"{address} has a negative balance at {height}"
            self._heights[address].append(height)
            self._balances[address].append(before + change)

    def _transaction(self, height: int, index: int, entry: dict[str, Any]) -> ChainTransaction:
        is_coinbase = "coinbase" in entry["vin"][0]
        assert is_coinbase == (index == 0)
        inputs = () if is_coinbase else tuple(self.unspent.pop((one["txid"], one["vout"])) for one in entry["vin"])
        outputs = tuple(
            Output(
                entry["txid"],
                one["n"],
                base_units(one["value"]),
                _address(one["scriptPubKey"]),
                one["scriptPubKey"]["hex"],
                one["scriptPubKey"]["type"],
            )
            for one in entry["vout"]
        )
        for output in outputs:
            # The genesis block's coinbase is unspendable.
            if output.is_spendable and height > 0:
                assert (output.txid, output.index) not in self.unspent
                self.unspent[output.txid, output.index] = output
        transaction = ChainTransaction(height, index, entry["txid"], is_coinbase, inputs, outputs)
        assert transaction.fee >= 0
        return transaction


def _address(script: dict[str, Any]) -> str | None:
    """Return the address of a script in the node's JSON, in its older or newer form."""
    if script["type"] in _TYPES_WITHOUT_ADDRESS:
        return None
    if "address" in script:
        return str(script["address"])
    addresses = script.get("addresses", [])
    assert len(addresses) <= 1, f"several addresses of {script['type']}"
    return str(addresses[0]) if addresses else None


def _total(outputs: Iterable[Output]) -> int:
    return sum(output.amount for output in outputs)
