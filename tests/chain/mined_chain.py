"""A chain of outputs with proof of work of any target, made in this process, and a node that serves it.

The blocks of a real local node all have the same target, which is nearly no work.
"""

from typing import Any

from pipelines.extract.utxo.serialization import double_hash, shown, target_of
from tests.chain.scripted_node import NodeError, ScriptedNode

# Targets in compact form. A header needs 256 attempts for HARD, and 2 for TRIVIAL.
HARD, FOUR_TIMES_EASIER, EASIER_STILL, TRIVIAL = 0x2000FFFF, 0x2003FFFC, 0x2003FFFD, 0x207FFFFF
COINBASE = 50
"""Base units that each block pays."""
_START_TIME, _STEP_SECONDS = 1_700_000_000, 600


class MinedChain(ScriptedNode):
    """A node; each of its blocks pays `COINBASE` to one script, and spends nothing.

    Attributes:
        blocks: of the chain, by number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[bytes] = []
        self._scripts: list[bytes] = []
        self.handlers = {
            "getblockchaininfo": lambda _: self._tip(),
            "getblockhash": lambda params: self._hash_at(params[0]),
            "getblockheader": self._header,
            "getblock": lambda params: self._block_of(params[0]).hex(),
            "help": lambda _: "getblock",
            "scantxoutset": self._scan,
            "getrawtransaction": self._transaction,
        }

    def mine(self, bits: int, blocks: int = 1, *, script: bytes = b"\x51", has_work: bool = True) -> None:
        """Add blocks that pay to a script; without work, their hashes are above their targets."""
        for _ in range(blocks):
            number = len(self.blocks)
            coinbase = b"".join(
                (
                    *(b"\2\0\0\0\1", bytes(32), b"\xff" * 4, b"\4", number.to_bytes(4, "little"), b"\xff" * 4),
                    *(b"\1", COINBASE.to_bytes(8, "little"), bytes([len(script)]), script, bytes(4)),
                )
            )
            parent = double_hash(self.blocks[-1][:80]) if self.blocks else bytes(32)
            time = _START_TIME + _STEP_SECONDS * number
            start = b"\2\0\0\0" + parent + double_hash(coinbase) + time.to_bytes(4, "little")
            headers = (start + bits.to_bytes(4, "little") + nonce.to_bytes(4, "little") for nonce in range(2**32))
            target = target_of(bits)
            header = next(one for one in headers if (int.from_bytes(double_hash(one), "little") <= target) is has_work)
            self.blocks.append(header + b"\1" + coinbase)
            self._scripts.append(script)

    def cut(self, blocks: int) -> None:
        """Keep only the first blocks."""
        del self.blocks[blocks:], self._scripts[blocks:]

    def hash_of(self, number: int) -> str:
        """Return the hash of a block."""
        return shown(double_hash(self.blocks[number][:80]))

    def _tip(self) -> dict[str, Any]:
        newest = len(self.blocks) - 1
        return {"blocks": newest, "headers": newest, "bestblockhash": self.hash_of(newest)}

    def _hash_at(self, number: int) -> str:
        if number >= len(self.blocks):
            raise NodeError(-8, "Block height out of range")
        return self.hash_of(number)

    def _block_of(self, hash_: str) -> bytes:
        found = [block for number, block in enumerate(self.blocks) if self.hash_of(number) == hash_]
        if not found:
            raise NodeError(-5, "Block not found")
        return found[0]

    def _header(self, params: list[Any]) -> Any:
        header = self._block_of(params[0])[:80]
        return {"confirmations": 1} if params[1] else header.hex()

    def _transaction(self, params: list[Any]) -> str:
        id_, _, block = params
        coinbase = self._block_of(block)[81:]
        if shown(double_hash(coinbase)) != id_:
            raise NodeError(-5, "No such transaction found in the provided block")
        return coinbase.hex()

    def _scan(self, params: list[Any]) -> dict[str, Any]:
        asked = {one["desc"].removeprefix("raw(").removesuffix(")") for one in params[1]}
        unspents = [
            {
                "txid": shown(double_hash(block[81:])),
                "vout": 0,
                "scriptPubKey": script.hex(),
                "amount": COINBASE / 10**8,
                "height": number,
            }
            for number, (block, script) in enumerate(zip(self.blocks, self._scripts, strict=True))
            if script.hex() in asked
        ]
        tip = self._tip()
        return {"success": True, "height": tip["blocks"], "bestblock": tip["bestblockhash"], "unspents": unspents}
