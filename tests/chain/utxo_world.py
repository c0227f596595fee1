"""Keys, payments, hand-made blocks and reorganisations on a running UTXO node.

Keys come from a seed, and transactions are signed here, so that the node needs no wallet. Amounts are base units.
"""

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from embit import base58, bech32
from embit import script as scripts
from embit.ec import PrivateKey
from embit.script import Script, Witness
from embit.transaction import Transaction, TransactionInput, TransactionOutput

from tests.chain.utxo_node import BASE_UNITS, UtxoNode, base_units

COINBASE_MATURITY = 100
FIRST_SUBSIDY = 50 * BASE_UNITS
HALVING_BLOCKS = 150
# Address kinds that `UtxoWorld.address` makes.
KINDS = ("p2pkh", "p2sh-p2wpkh", "p2wpkh", "p2wsh", "p2tr")
# Anybody may spend an output with this script: the number 1, which is true.
OPEN_SCRIPT = b"\x51"

# An address as text, or a script.
Target = str | bytes

_NETWORK: dict[str, Any] = {"wif": b"\xef", "p2pkh": b"\x6f", "p2sh": b"\x3a", "bech32": "rltc"}
# The node reads script-hash addresses with this prefix, too, but never writes them.
_OLD_P2SH_PREFIX = b"\xc4"
_BITS = 0x207FFFFF
_HIGHEST_HASH = 0x7FFFFF << (8 * (0x20 - 3))
_SIGHASH_ALL = b"\x01"


class Coin(NamedTuple):
    """An unspent output. `coinbase_height` is the height of its block if a coinbase made it."""

    txid: str
    vout: int
    amount: int
    script: bytes
    coinbase_height: int | None = None


@dataclass(frozen=True)
class _Lock:
    """How to spend a script: its kind, its keys, and the script that its hash stands for."""

    kind: str
    keys: tuple[PrivateKey, ...]
    script: bytes
    inner: bytes = b""


def subsidy(height: int) -> int:
    """Return the new coins of a block, base units."""
    return FIRST_SUBSIDY >> (height // HALVING_BLOCKS)


@cache
def script_of(address: str) -> bytes:
    """Return the script of an address, in either form of a script hash.

    Raises:
        ValueError: no address of this network.
    """
    if address.startswith(_NETWORK["bech32"] + "1"):
        version, program = bech32.decode(_NETWORK["bech32"], address)
        if version is None:
            raise ValueError(f"{address} is not an address")
        return bytes([version + 0x50 if version else 0, len(program), *program])
    data = base58.decode_check(address)
    if data[:1] == _NETWORK["p2pkh"]:
        return b"\x76\xa9\x14" + bytes(data[1:]) + b"\x88\xac"
    if data[:1] in (_NETWORK["p2sh"], _OLD_P2SH_PREFIX):
        return b"\xa9\x14" + bytes(data[1:]) + b"\x87"
    raise ValueError(f"{address} is of another network")


def old_form(address: str) -> str:
    """Return a script-hash address with the old prefix, which names the same script."""
    return str(base58.encode_check(_OLD_P2SH_PREFIX + script_of(address)[2:22]))


def data_script(data: bytes) -> bytes:
    """Return a script of up to 75 bytes of data, which makes its output unspendable (OP_RETURN)."""
    return b"\x6a" + _push(data)


class UtxoWorld:
    """Keys and payments of one chain. Payments are queued until `mine` puts them in a block, in their order.

    The world knows its own coins, also those of queued payments, which later payments may spend. Call `sync` after
    changes that bypass the world, and after the node refused a block.

    Args:
        node: a running node; the chain continues from its head.
        seed: seed of all keys.
    """

    def __init__(self, node: UtxoNode, *, seed: int = 1) -> None:
        self.node = node
        self._seed = seed
        self._numbers = itertools.count(1)
        self._locks: dict[bytes, _Lock] = {OPEN_SCRIPT: _Lock("open", (), OPEN_SCRIPT)}
        self._coins: dict[bytes, dict[tuple[str, int], Coin]] = defaultdict(dict)
        # Scripts of all coins so far, also of those spent.
        self._owners: dict[tuple[str, int], bytes] = {}
        self._queue: list[tuple[Transaction, int]] = []
        self._sent: dict[str, tuple[Transaction, int]] = {}
        self._blocks_made = itertools.count(1)
        self.head = node.head()
        self.miner = self.address()

    # Keys and scripts

    def address(self, kind: str = "p2wpkh") -> str:
        """Make a new address of one of `KINDS`; p2wsh needs two of three keys.

        Raises:
            ValueError: another kind.
        """
        if kind == "p2wsh":
            keys = self._keys(3)
            inner = scripts.multisig(2, [key.get_public_key() for key in keys])
            made = scripts.p2wsh(inner)
        else:
            keys = self._keys(1)
            public = keys[0].get_public_key()
            inner = Script()
            if kind == "p2pkh":
                made = scripts.p2pkh(public)
            elif kind == "p2wpkh":
                made = scripts.p2wpkh(public)
            elif kind == "p2sh-p2wpkh":
                inner = scripts.p2wpkh(public)
                made = scripts.p2sh(inner)
            elif kind == "p2tr":
                made = scripts.p2tr(public)
            else:
                raise ValueError(f"unknown kind of address: {kind}")
        self._locks[made.data] = _Lock(kind, keys, made.data, inner.data)
        return str(made.address(_NETWORK))

    def take_key(self, key: PrivateKey) -> str:
        """Take over a key made elsewhere, so that payments can spend its outputs; return its p2wpkh address."""
        made = scripts.p2wpkh(key.get_public_key())
        self._locks[made.data] = _Lock("p2wpkh", (key,), made.data)
        return str(made.address(_NETWORK))

    def p2pk_script(self) -> bytes:
        """Make a new script with a bare public key; it has no address."""
        keys = self._keys(1)
        made = _push(keys[0].get_public_key().sec()) + b"\xac"
        self._locks[made] = _Lock("p2pk", keys, made)
        return made

    def multisig_script(self) -> bytes:
        """Make a new script that needs one of two keys. It has no address; the node's JSON lists those of its keys."""
        keys = self._keys(2)
        made = bytes(scripts.multisig(1, [key.get_public_key() for key in keys]).data)
        self._locks[made] = _Lock("multisig", keys, made)
        return made

    def wif(self, address: str) -> list[str]:
        """Return the private keys of an address of this world, as text for the node."""
        return [str(key.wif(_NETWORK)) for key in self._locks[script_of(address)].keys]

    # Payments

    def coins(self, owner: Target) -> list[Coin]:
        """Return the coins of an address or script that the next block may spend, oldest first."""
        latest = self.head + 1 - COINBASE_MATURITY
        return [
            coin
            for coin in self._coins[_script(owner)].values()
            if coin.coinbase_height is None or coin.coinbase_height <= latest
        ]

    def pay(
        self,
        outputs: Mapping[str, int] | Sequence[tuple[Target, int]],
        *,
        senders: Sequence[Target] = (),
        inputs: Sequence[Coin] | None = None,
        fee: int = 1000,
        change: Target | None = None,
    ) -> str:
        """Queue a signed transaction for the next block and return its id.

        Args:
            outputs: receivers and base units, in order; a sequence may name a receiver several times.
            senders: each one spends at least one coin, oldest first, until the sum suffices. Default: the miner.
            inputs: spend exactly these coins, in place of coins of the senders.
            fee: base units.
            change: receives the remainder, as the last output; default: the first input's own script.

        Raises:
            ValueError: the coins do not suffice.
        """
        pairs = [(_script(to), amount) for to, amount in (outputs.items() if isinstance(outputs, Mapping) else outputs)]
        needed = sum(amount for _, amount in pairs) + fee
        spent = self._choose(senders or (self.miner,), needed) if inputs is None else list(inputs)
        left = sum(coin.amount for coin in spent) - needed
        if left < 0:
            raise ValueError(f"{-left} base units are missing: {len(spent)} coins do not suffice")
        if left > 0:
            pairs.append((spent[0].script if change is None else _script(change), left))
        transaction = Transaction(
            vin=[TransactionInput(bytes.fromhex(coin.txid), coin.vout) for coin in spent],
            vout=[TransactionOutput(amount, Script(script)) for script, amount in pairs],
        )
        for index, coin in enumerate(spent):
            self._sign(transaction, index, spent, self._locks[coin.script])
        return self._add(transaction, fee)

    def repeat(self, txid: str) -> str:
        """Queue an earlier payment of this world unchanged, after a reorganisation removed it; returns its id."""
        return self._add(*self._sent[txid])

    def broadcast(self) -> list[str]:
        """Send all queued payments to the node's mempool in place of the next block, and return their ids.

        Raises:
            NodeError: the mempool refused one.
        """
        queue, self._queue = self._queue, []
        return [str(self.node.rpc("sendrawtransaction", one.serialize().hex(), 0)) for one, _ in queue]

    # Blocks

    def mine(
        self,
        blocks: int = 1,
        to: str | None = None,
        *,
        coinbase: Sequence[tuple[Target, int]] | None = None,
        timestamp: int | None = None,
        mempool: bool = False,
    ) -> int:
        """Mine blocks and return the height of the last one. The first one has all queued payments.

        Args:
            blocks: their number.
            to: receives subsidy and fees; default: the miner.
            coinbase: exact outputs of the first block's coinbase, in place of one output; they may claim too little.
            timestamp: of the first block, see `UtxoNode.take_time`.
            mempool: include the mempool's payments; the node chooses their order. The queue must be empty.

        Raises:
            NodeError: the node refused a block.
            ValueError: a mempool block while payments are queued.
        """
        receiver = self.miner if to is None else to
        by_hand = bool(self._queue or coinbase is not None or timestamp is not None)
        if by_hand and mempool:
            raise ValueError("a block from the mempool takes neither queued payments nor other options")
        if by_hand:
            self._make_block([(receiver, None)] if coinbase is None else coinbase, timestamp)
            blocks -= 1
        if blocks:
            self.node.mine(receiver, blocks, mempool=mempool)
            self._add_coinbases(self.head + 1, self.head + blocks)
        return self.head

    def mature(self, coinbases: int = 1) -> int:
        """Give the miner this many coinbases that he may spend; returns the height of the last block."""
        return self.mine(coinbases + COINBASE_MATURITY - 1)

    def grow(self, megabytes: int) -> int:
        """Mine blocks of nearly a megabyte each, and return the height of the last one.

        The node writes files of 128 MiB, and a pruned node deletes whole files that are full.
        """
        # One instruction that pushes all of it: the node lists instructions one by one.
        padding = b"\x6a\x4e" + (980_000).to_bytes(4, "little") + bytes(980_000)
        for _ in range(megabytes):
            self.mine(coinbase=[(self.miner, subsidy(self.head + 1)), (padding, 0)])
        return self.head

    def reorganise(
        self, depth: int, blocks: int, payments: Callable[[], object] | None = None, *, to: str | None = None
    ) -> int:
        """Replace the newest blocks by others, and return the new height.

        Payments of the replaced blocks return to the node's mempool; blocks made here leave them out. A coinbase of the
        same height and receiver has the same transaction id in both branches.

        Args:
            depth: number of blocks to remove.
            blocks: number of blocks to mine then.
            payments: is called after the removal, when the removed blocks' inputs can be spent again. It queues
                payments for the first new block, such as a double spend or a `repeat`, or mines blocks itself.
            to: receives subsidy and fees of the new blocks; default: the miner.

        Raises:
            ValueError: payments are still queued.
        """
        if self._queue:
            raise ValueError("mine the queued payments first")
        self.node.rpc("invalidateblock", self.node.block_hash(self.head - depth + 1))
        self.sync()
        if payments is not None:
            payments()
        return self.mine(blocks, to) if blocks else self.head

    def sync(self) -> None:
        """Read the world's coins from the node; forgets payments that no block has."""
        self._queue.clear()
        self._coins.clear()
        self.head = self.node.head()
        found = self.node.rpc("scantxoutset", "start", [f"raw({script.hex()})" for script in self._locks])["unspents"]
        young = sorted({coin["height"] for coin in found if coin["height"] > self.head - COINBASE_MATURITY})
        hashes = self.node.batch([("getblockhash", [height]) for height in young])
        coinbases = {block["tx"][0] for block in self.node.batch([("getblock", [one]) for one in hashes])}
        for coin in sorted(found, key=lambda coin: (coin["height"], coin["txid"], coin["vout"])):
            made = coin["height"] if coin["txid"] in coinbases else None
            script = bytes.fromhex(coin["scriptPubKey"])
            self._receive(Coin(coin["txid"], coin["vout"], base_units(coin["amount"]), script, made))

    # Inner parts

    def _keys(self, count: int) -> tuple[PrivateKey, ...]:
        seeds = (f"{self._seed}/{next(self._numbers)}".encode() for _ in range(count))
        return tuple(PrivateKey(hashlib.sha256(seed).digest()) for seed in seeds)

    def _receive(self, coin: Coin) -> None:
        if coin.script in self._locks:
            self._coins[coin.script][coin.txid, coin.vout] = coin
            self._owners[coin.txid, coin.vout] = coin.script

    def _choose(self, senders: Sequence[Target], needed: int) -> list[Coin]:
        """Return one coin of each sender, and then more coins in the senders' order until the sum suffices."""
        owned = [self.coins(sender) for sender in senders]
        if not all(owned):
            raise ValueError("a sender has no coin to spend")
        chosen = [coins[0] for coins in owned]
        total = sum(coin.amount for coin in chosen)
        for coin in itertools.chain.from_iterable(coins[1:] for coins in owned):
            if total >= needed:
                break
            chosen.append(coin)
            total += coin.amount
        return chosen

    def _add(self, transaction: Transaction, fee: int) -> str:
        txid = str(transaction.txid().hex())
        self._queue.append((transaction, fee))
        self._sent[txid] = transaction, fee
        for one in transaction.vin:
            outpoint = one.txid.hex(), one.vout
            self._coins[self._owners[outpoint]].pop(outpoint, None)
        for index, output in enumerate(transaction.vout):
            self._receive(Coin(txid, index, output.value, output.script_pubkey.data))
        return txid

    def _sign(self, transaction: Transaction, index: int, spent: Sequence[Coin], lock: _Lock) -> None:
        """Fill in the script or witness of one input."""
        entry, amount = transaction.vin[index], spent[index].amount

        def ecdsa(key: PrivateKey, digest: bytes) -> bytes:
            return bytes(key.sign(digest).serialize()) + _SIGHASH_ALL

        def key_hash_witness(program: bytes) -> Witness:
            code = Script(b"\x76\xa9" + program[1:] + b"\x88\xac")
            digest = transaction.sighash_segwit(index, code, amount)
            return Witness([ecdsa(lock.keys[0], digest), lock.keys[0].get_public_key().sec()])

        if lock.kind == "p2wpkh":
            entry.witness = key_hash_witness(lock.script)
        elif lock.kind == "p2sh-p2wpkh":
            entry.script_sig = Script(_push(lock.inner))
            entry.witness = key_hash_witness(lock.inner)
        elif lock.kind == "p2wsh":
            digest = transaction.sighash_segwit(index, Script(lock.inner), amount)
            entry.witness = Witness([b"", *(ecdsa(key, digest) for key in lock.keys[:2]), lock.inner])
        elif lock.kind == "p2tr":
            digest = transaction.sighash_taproot(
                index, [Script(coin.script) for coin in spent], [coin.amount for coin in spent]
            )
            entry.witness = Witness([lock.keys[0].taproot_tweak().schnorr_sign(digest).serialize()])
        elif lock.kind != "open":
            signature = _push(ecdsa(lock.keys[0], transaction.sighash_legacy(index, Script(lock.script))))
            if lock.kind == "p2pkh":
                signature += _push(lock.keys[0].get_public_key().sec())
            elif lock.kind == "multisig":
                # The instruction takes one entry too many from the stack.
                signature = b"\x00" + signature
            entry.script_sig = Script(signature)

    def _make_block(self, claims: Sequence[tuple[Target, int | None]], timestamp: int | None) -> None:
        """Build, solve and submit one block with all queued payments; None claims subsidy and fees."""
        height = self.node.head() + 1
        queue, self._queue = self._queue, []
        payments = [transaction for transaction, _ in queue]
        allowed = subsidy(height) + sum(fee for _, fee in queue)
        # A number makes each block unique, also of two with the same parent and time.
        entry = TransactionInput(
            bytes(32), 0xFFFFFFFF, Script(_height_push(height) + _push(next(self._blocks_made).to_bytes(8, "big")))
        )
        coinbase = Transaction(
            vin=[entry],
            vout=[
                *(TransactionOutput(allowed if share is None else share, Script(_script(to))) for to, share in claims),
                TransactionOutput(0, Script(data_script(b"\xaa\x21\xa9\xed" + _witness_commitment(payments)))),
            ],
        )
        root = _merkle_root([_hash(_without_witness(one)) for one in (coinbase, *payments)])
        entry.witness = Witness([bytes(32)])
        parent = bytes.fromhex(self.node.block_hash(height - 1))[::-1]
        time = self.node.take_time(timestamp)
        head = _solve(
            (0x20000000).to_bytes(4, "little")
            + parent
            + root
            + time.to_bytes(4, "little")
            + _BITS.to_bytes(4, "little")
        )
        body = b"".join(one.serialize() for one in (coinbase, *payments))
        refusal = self.node.rpc("submitblock", (head + _count(1 + len(payments)) + body).hex())
        if refusal is not None:
            raise ValueError(f"the node refused block {height}: {refusal}")
        self.head = height
        for index, output in enumerate(coinbase.vout):
            self._receive(Coin(coinbase.txid().hex(), index, output.value, output.script_pubkey.data, height))

    def _add_coinbases(self, first: int, last: int) -> None:
        hashes = self.node.batch([("getblockhash", [height]) for height in range(first, last + 1)])
        blocks = self.node.batch([("getblock", [one]) for one in hashes])
        made = self.node.batch([("getrawtransaction", [block["tx"][0], True, block["hash"]]) for block in blocks])
        for block, coinbase in zip(blocks, made, strict=True):
            for output in coinbase["vout"]:
                script = bytes.fromhex(output["scriptPubKey"]["hex"])
                self._receive(Coin(coinbase["txid"], output["n"], base_units(output["value"]), script, block["height"]))
        self.head = last


def _script(target: Target) -> bytes:
    return target if isinstance(target, bytes) else script_of(target)


def _push(data: bytes) -> bytes:
    assert len(data) <= 75
    return bytes([len(data)]) + data


def _height_push(height: int) -> bytes:
    """The height as BIP34 wants it at the start of a coinbase."""
    if height <= 16:
        return bytes([0x50 + height])
    return _push(height.to_bytes(height.bit_length() // 8 + 1, "little"))


def _count(number: int) -> bytes:
    if number < 0xFD:
        return bytes([number])
    return b"\xfd" + number.to_bytes(2, "little")


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def _without_witness(transaction: Transaction) -> bytes:
    entries = [TransactionInput(one.txid, one.vout, one.script_sig, one.sequence) for one in transaction.vin]
    return bytes(Transaction(transaction.version, entries, transaction.vout, transaction.locktime).serialize())


def _merkle_root(leaves: Sequence[bytes]) -> bytes:
    level = list(leaves)
    while len(level) > 1:
        if len(level) % 2:
            level.append(level[-1])
        level = [_hash(left + right) for left, right in zip(level[::2], level[1::2], strict=True)]
    return level[0]


def _witness_commitment(payments: Sequence[Transaction]) -> bytes:
    return _hash(_merkle_root([bytes(32), *(_hash(one.serialize()) for one in payments)]) + bytes(32))


def _solve(head: bytes) -> bytes:
    """Append the first nonce with enough work: Litecoin hashes headers by scrypt."""
    for nonce in itertools.count():
        solved = head + nonce.to_bytes(4, "little")
        digest = hashlib.scrypt(solved, salt=solved, n=1024, r=1, p=1, dklen=32)
        if int.from_bytes(digest, "little") <= _HIGHEST_HASH:
            return solved
    raise AssertionError("unreachable")
