"""Contracts, wallets and transfers on a running node, and the node's own balances.

Tests and the demo compare the service's numbers with these, which do not use the service's code.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from eth_utils.crypto import keccak
from web3 import Web3
from web3.contract import Contract

from tests.chain.artifacts import artifact
from tests.chain.node import AnvilNode

MULTICALL_ADDRESS = "0xca11bde05977b3631167028862be2a173976ca11"
ZERO_ADDRESS = "0x" + "0" * 40
TRANSFER_TOPIC = "0x" + keccak(text="Transfer(address,address,uint256)").hex()
MAX_UINT256 = 2**256 - 1

_CALL_GAS = 300_000
_DEPLOY_GAS = 20_000_000
# A transfer to a new holder inside emit_many costs about 25,000 gas.
_EMIT_GAS = 40_000


@dataclass(frozen=True)
class Token:
    """A deployed token: lower-case address, name of its source file, symbol and decimals."""

    address: str
    contract: str
    symbol: str | None
    decimals: int | None


@dataclass(frozen=True)
class BlockRange:
    """Blocks `first` to `last`, both included."""

    first: int
    last: int


def holder_at(index: int) -> str:
    """Return the address that TestToken's `holder_at` derives: the end of keccak256 of the index."""
    return "0x" + keccak(index.to_bytes(32, "big"))[12:].hex()


@cache
def _contract(name: str) -> Contract:
    compiled = artifact(name)
    return Web3().eth.contract(abi=compiled.abi, bytecode=compiled.bytecode)  # type: ignore[return-value]


def _argument(value: Any) -> Any:
    """Addresses in the form that web3.py insists on."""
    if isinstance(value, str) and len(value) == 42 and value.startswith("0x"):
        return Web3.to_checksum_address(value)
    if isinstance(value, list):
        return [_argument(item) for item in value]
    return value


def call_data(contract: str, function: str, *arguments: Any) -> str:
    """Encode a call of a contract's function as 0x text; addresses in any case."""
    return str(_contract(contract).encode_abi(function, [_argument(argument) for argument in arguments]))


class World:
    """Wallets and contracts of one chain, and random but repeatable traffic among them.

    Transactions are queued until `mine` sends them and makes a block.

    Args:
        node: a running node; the chain continues from its head.
        seed: seed of all random choices.
        wallet_count: number of wallets, with 1,000 native coins each.
        block_seconds: seconds between blocks, if `mine` gets no timestamp.
        gas_price: wei per gas of every transaction.
    """

    def __init__(
        self, node: AnvilNode, *, seed: int = 1, wallet_count: int = 300, block_seconds: int = 12, gas_price: int = 0
    ) -> None:
        self.node = node
        self.random = random.Random(seed)
        self.wallets = tuple(holder_at(index) for index in range(wallet_count))
        self.deployer = holder_at(2**255)
        self.block_seconds = block_seconds
        self._gas_price = hex(gas_price)
        self._time = node.block_time(node.head())
        self._waiting: list[tuple[str, list[Any]]] = []
        node.batch([("anvil_setBalance", [wallet, hex(1000 * 10**18)]) for wallet in (*self.wallets, self.deployer)])

    # Transactions and blocks

    def submit(self, sender: str, to: str | None, data: str = "0x", *, value: int = 0, gas: int = _CALL_GAS) -> None:
        """Queue one transaction for the next block; `to` None creates a contract, `value` in wei."""
        transaction = {"from": sender, "data": data, "value": hex(value), "gas": hex(gas), "gasPrice": self._gas_price}
        if to is not None:
            transaction["to"] = to
        self._waiting.append(("eth_sendTransaction", [transaction]))

    def mine(self, timestamp: int | None = None) -> int:
        """Send all queued transactions, mine them in one block and return its number.

        Args:
            timestamp: Unix seconds, at least one second after the parent; default: `block_seconds` after it.
        """
        waiting, self._waiting = self._waiting, []
        for method, params in waiting:
            # One by one: the node runs the calls of a batch concurrently, in any order.
            self.node.rpc(method, params)
        self._time = self._time + self.block_seconds if timestamp is None else max(timestamp, self._time + 1)
        return self.node.mine(self._time)

    def deploy(self, contract: str, *arguments: Any, sender: str | None = None) -> str:
        """Deploy a contract in a separate block and return its address in lower case."""
        data = _contract(contract).constructor(*map(_argument, arguments)).data_in_transaction
        self.submit(sender or self.deployer, None, str(data), gas=_DEPLOY_GAS)
        block = self.node.rpc("eth_getBlockByNumber", [hex(self.mine()), False])
        receipt = self.node.rpc("eth_getTransactionReceipt", [block["transactions"][-1]])
        if receipt["status"] != "0x1":
            raise ValueError(f"deploying {contract} reverted in block {receipt['blockNumber']}")
        return str(receipt["contractAddress"]).lower()

    def place_multicall(self) -> str:
        """Put Multicall3 at its well-known address and return that."""
        self.node.set_code(MULTICALL_ADDRESS, artifact("Multicall3").runtime)
        return MULTICALL_ADDRESS

    def deploy_token(
        self,
        symbol: str,
        decimals: int,
        *,
        name: str | None = None,
        supply: int | None = None,
        fee_basis_points: int = 0,
        fee_collector: str | None = None,
    ) -> Token:
        """Deploy a TestToken; `supply` in base units, the deployer's, by default a thousand million whole tokens."""
        address = self.deploy(
            "TestToken",
            name or f"{symbol} token",
            symbol,
            decimals,
            10 ** (9 + decimals) if supply is None else supply,
            fee_basis_points,
            fee_collector or self.deployer,
        )
        return Token(address, "TestToken", symbol, decimals)

    def deploy_bytes32_token(self, symbol: str, decimals: int) -> Token:
        """Deploy a Bytes32Token with a supply of a thousand million whole tokens for the deployer."""
        words = (f"{symbol} token".encode().ljust(32, b"\0"), symbol.encode().ljust(32, b"\0"))
        address = self.deploy("Bytes32Token", *words, decimals, 10 ** (9 + decimals))
        return Token(address, "Bytes32Token", symbol, decimals)

    def deploy_strange_token(self, contract: str, symbol: str, decimals: int, *arguments: Any) -> Token:
        """Deploy a token of another make with a supply of a thousand million whole tokens, the deployer's.

        Args:
            contract: RebaseToken, FeeToken or LyingToken.
            symbol: also in the name.
            decimals: of the token.
            arguments: of the constructor, after the supply.
        """
        address = self.deploy(contract, f"{symbol} token", symbol, decimals, 10 ** (9 + decimals), *arguments)
        return Token(address, contract, symbol, decimals)

    # Traffic

    def transfer(self, token: Token, sender: str, receiver: str, amount: int) -> None:
        """Queue one token transfer in base units. It reverts in its block if the sender has less."""
        self.submit(sender, token.address, call_data(token.contract, "transfer", receiver, amount))

    def distribute(self, token: Token, amount: int, holders: Iterable[str] | None = None) -> int:
        """Give every wallet, or each of `holders`, `amount` base units from the deployer; returns the block."""
        for holder in self.wallets if holders is None else holders:
            self.transfer(token, self.deployer, holder, amount)
        return self.mine()

    def emit_blocks(
        self, token: Token, *, blocks: int, transactions: int, events: int, amount: int = 1, holders: int | None = None
    ) -> BlockRange:
        """Make blocks x transactions x events real transfers from the deployer, as fast as the node can.

        Args:
            token: a TestToken with enough balance of the deployer.
            blocks: number of blocks.
            transactions: transactions in each block.
            events: transfers in each transaction.
            amount: amount of each transfer in base units.
            holders: receivers are holder_at(0) to holder_at(holders - 1), in turn; default: always new ones. The node
                keeps the state of every block, so more holders make blocks slower. With 1,000 transfers, a block
                takes 6 ms at 300 holders and 26 ms at 20,000.
        """
        first = self.node.head() + 1
        made = 0
        for _ in range(blocks):
            for _ in range(transactions):
                data = call_data("TestToken", "emit_many", events, amount, made, holders or MAX_UINT256)
                self.submit(self.deployer, token.address, data, gas=_CALL_GAS + events * _EMIT_GAS)
                made += events
            self.mine()
        return BlockRange(first, self.node.head())

    def transfer_many(
        self,
        count: int,
        tokens: Sequence[Token],
        *,
        per_block: int = 40,
        wallets: Sequence[str] | None = None,
        timestamp: int | None = None,
    ) -> BlockRange:
        """Make random traffic: transfers mostly; also whole balances, zero amounts, to oneself, mints, burns, failures.

        Args:
            count: transactions.
            tokens: that move; each wallet should have some, see `distribute`.
            per_block: transactions in a block.
            wallets: that take part; default: all.
            timestamp: of the first block; default: `block_seconds` after the parent.
        """
        first = self.node.head() + 1
        for start in range(0, count, per_block):
            self._submit_traffic(min(per_block, count - start), tokens, wallets or self.wallets)
            self.mine(timestamp if start == 0 else None)
        return BlockRange(first, self.node.head())

    def _submit_traffic(self, count: int, tokens: Sequence[Token], wallets: Sequence[str]) -> None:
        picks = [(self.random.choice(tokens), self.random.choice(wallets)) for _ in range(count)]
        known = self.node.batch([_balance_call(token.address, holder, "latest") for token, holder in picks])
        spent: dict[tuple[str, str], int] = defaultdict(int)
        for (token, sender), balance in zip(picks, known, strict=True):
            available = int(balance, 16) - spent[token.address, sender]
            kind, receiver, amount = self._draw(token, sender, available, wallets)
            if kind == "mint":
                # At most the current supply, so that supplies grow slowly.
                self.submit(self.deployer, token.address, call_data(token.contract, "mint", receiver, amount))
                continue
            if kind != "failure" and receiver != sender:
                spent[token.address, sender] += amount
            if kind == "burn":
                self.submit(sender, token.address, call_data(token.contract, "burn", amount))
            else:
                self.transfer(token, sender, receiver, amount)

    def _draw(self, token: Token, sender: str, available: int, wallets: Sequence[str]) -> tuple[str, str, int]:
        """Choose what one transaction does: its kind, receiver and amount."""
        dice = self.random.random()
        receiver = self.random.choice(wallets)
        part = self.random.randint(0, max(available // 4, 0))
        if dice < 0.02:
            return "whole", receiver, available
        if dice < 0.05:
            return "zero", receiver, 0
        if dice < 0.08:
            return "self", sender, part
        if dice < 0.10:
            return "failure", receiver, MAX_UINT256
        if dice < 0.14 and token.contract != "NoDecimalsToken":
            return "mint", receiver, part
        if dice < 0.18 and token.contract != "NoDecimalsToken":
            return "burn", ZERO_ADDRESS, part
        return "transfer", receiver, part

    # The node's answers

    def call(self, contract: str, address: str, function: str, *arguments: Any, block: int | None = None) -> Any:
        """Call a function as of the end of a block (default: the newest) and return its decoded result."""
        request = {"to": address, "data": call_data(contract, function, *arguments)}
        answer = self.node.rpc("eth_call", [request, "latest" if block is None else hex(block)])
        codec = Web3().codec
        outputs = _contract(contract).get_function_by_name(function).abi["outputs"]
        values = codec.decode([output["type"] for output in outputs], bytes.fromhex(answer[2:]))
        return values[0] if len(values) == 1 else values

    def balance_of(self, token: Token | str, holder: str, block: int) -> int:
        """Return `balanceOf` at the end of a block, base units."""
        return self.balances_of(token, [holder], block)[0]

    def balances_of(self, token: Token | str, holders: Sequence[str], block: int) -> list[int]:
        """Return `balanceOf` of many holders at the end of a block, in their order; 0 before the contract."""
        address = token if isinstance(token, str) else token.address
        answers = self.node.batch([_balance_call(address, holder, hex(block)) for holder in holders])
        return [0 if answer == "0x" else int(answer, 16) for answer in answers]

    def total_supply(self, token: Token | str, block: int) -> int:
        """Return `totalSupply` at the end of a block, base units."""
        address = token if isinstance(token, str) else token.address
        return int(self.node.rpc("eth_call", [{"to": address, "data": "0x18160ddd"}, hex(block)]), 16)

    def native_balance(self, holder: str, block: int) -> int:
        """Return the native balance at the end of a block, wei."""
        return int(self.node.rpc("eth_getBalance", [holder, hex(block)]), 16)

    def held(self, asset: str, holder: str, block: int) -> int:
        """Return the balance of a token, or of `native`, at the end of a block, base units."""
        return self.native_balance(holder, block) if asset == "native" else self.balance_of(asset, holder, block)

    def block_time(self, block: int) -> int:
        """Return the timestamp of a block, Unix seconds."""
        return self.node.block_time(block)

    def transfer_logs(self, first: int, last: int, address: str | None = None) -> list[dict[str, Any]]:
        """Return the ERC-20 Transfer logs (three topics) of blocks first to last, as the node gives them."""
        criteria: dict[str, Any] = {"fromBlock": hex(first), "toBlock": hex(last), "topics": [TRANSFER_TOPIC]}
        if address is not None:
            criteria["address"] = address
        return [log for log in self.node.rpc("eth_getLogs", [criteria]) if len(log["topics"]) == 3]


def _balance_call(token: str, holder: str, block: str) -> tuple[str, list[Any]]:
    return "eth_call", [{"to": token, "data": "0x70a08231" + holder[2:].rjust(64, "0")}, block]
