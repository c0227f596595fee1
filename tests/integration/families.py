"""A real chain of each family, with expected answers that do not come from the family's own code.

A new family adds a class here and a line to `CHAINS`; then `test_families` tests its whole protocol.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from control.networks.definitions import Network, load_networks
from pipelines.extract.evm.definition import own_definition
from pipelines.extract.utxo.definition import own_definition as own_utxo_definition
from pipelines.rows import Kind
from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.chain.utxo_node import UtxoNode
from tests.chain.utxo_world import UtxoWorld
from tests.chain.world import World
from tests.integration.harness import LocalNetwork, LocalUtxoNetwork
from tests.oracles.utxo_chain import ChainOracle


class Block(NamedTuple):
    """A block's data from the node; `time` in Unix seconds, by the family's clock."""

    hash: str
    parent_hash: str
    time: int


class Chain(Protocol):
    """A chain with traffic in blocks `opening` to the head, including at least two native movements.

    Attributes:
        addresses: an address with movements for each kind that the family collects.
        idle: a wallet without movements.
    """

    network: Network
    opening: int
    addresses: dict[Kind, str]
    idle: str

    def head(self) -> int:
        """Number of the newest block."""

    def block(self, number: int) -> Block:
        """A block, from the node itself."""

    def keys(self, kind: Kind) -> dict[str, set[tuple[object, ...]]]:
        """For each raw table of the kind, the keys of its address's rows in blocks `opening` to the head."""

    def balance(self, token: str, holder: str, number: int) -> int:
        """A balance at the end of a block, from the node itself."""

    def supply(self, token: str, number: int) -> int:
        """A supply at the end of a block, from the node itself. Like the rest, only of families with tokens."""

    def creation(self, token: str) -> int:
        """The block in which a token was created."""

    def likely_holders(self, token: str) -> set[str]:
        """Possible holders of a token without a movement: the token itself, its owner and its creator."""

    def senders(self, number: int) -> dict[str, str]:
        """The sender of each transaction of a block, by transaction hash."""

    def replace_tail(self, blocks: int) -> None:
        """Replace the newest blocks by the same number and one more, with traffic."""

    def elsewhere(self) -> Network:
        """The definition with the identity of another chain."""


class EvmChain:
    """Token and native transfers on a local EVM node."""

    def __init__(self, node: AnvilNode, folder: Path) -> None:
        defined = LocalNetwork("local", node.url)
        path = folder / "networks.toml"
        path.write_text(defined.as_toml())
        self.network = load_networks(path, {defined.variable: node.url})["local"]
        self._node = node
        self._world = World(node, wallet_count=6, gas_price=10**9)
        self._world.place_multicall()
        self._world.mine()
        self._token = self._world.deploy_token("GOLD", 18)
        self._created = node.head()
        self.opening = self._created + 1
        self._world.distribute(self._token, 10**20)
        wallet = self._world.wallets[0]
        self.addresses: dict[Kind, str] = {"token": self._token.address, "wallet": wallet, "native": wallet}
        self.idle = "0x" + "1d" * 20
        self._move(5)

    def _move(self, blocks: int) -> None:
        """Mine blocks; every second one has movements."""
        wallets = self._world.wallets
        for number in range(blocks):
            if number % 2:
                self._world.transfer(self._token, wallets[0], wallets[1], 10**15 + number)
                self._world.transfer(self._token, wallets[2], wallets[0], 7)
                self._world.submit(wallets[3], wallets[0], value=5 + number)
            self._world.mine()

    def head(self) -> int:
        return self._node.head()

    def block(self, number: int) -> Block:
        answer = self._node.rpc("eth_getBlockByNumber", [hex(number), False])
        return Block(answer["hash"], answer["parentHash"], int(answer["timestamp"], 16))

    def keys(self, kind: Kind) -> dict[str, set[tuple[object, ...]]]:
        address = self.addresses[kind]
        numbers = range(self.opening, self.head() + 1)
        if kind == "native":
            transactions: set[tuple[object, ...]] = {
                (number, int(item["transactionIndex"], 16))
                for number in numbers
                for item in self._node.rpc("eth_getBlockByNumber", [hex(number), True])["transactions"]
                if address in (item["from"], item["to"])
            }
            return {"transactions": transactions, "internal_transfers": set()}
        logs: set[tuple[object, ...]] = {
            (int(log["blockNumber"], 16), int(log["transactionIndex"], 16), int(log["logIndex"], 16))
            for log in self._world.transfer_logs(numbers[0], numbers[-1])
            if address == log["address"] or any(address[2:] in topic for topic in log["topics"])
        }
        return {"token_transfers": logs}

    def balance(self, token: str, holder: str, number: int) -> int:
        if token == "native":
            return self._world.native_balance(holder, number)
        return self._world.balance_of(token, holder, number)

    def supply(self, token: str, number: int) -> int:
        return self._world.total_supply(token, number)

    def creation(self, token: str) -> int:
        assert token == self._token.address
        return self._created

    def likely_holders(self, token: str) -> set[str]:
        # The token has no owner.
        assert token == self._token.address
        return {token, self._world.deployer}

    def senders(self, number: int) -> dict[str, str]:
        hashes = self._node.rpc("eth_getBlockByNumber", [hex(number), False])["transactions"]
        return {one: self._node.rpc("eth_getTransactionReceipt", [one])["from"] for one in hashes}

    def replace_tail(self, blocks: int) -> None:
        self._node.rpc("anvil_rollback", [blocks])
        self._move(blocks + 1)

    def elsewhere(self) -> Network:
        own = own_definition(self.network)
        return replace(self.network, own=replace(own, chain_id=own.chain_id + 1))


@contextmanager
def _evm(folder: Path) -> Iterator[Chain]:
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        yield EvmChain(node, folder)


class UtxoChain:
    """Payments on a local node of outputs."""

    def __init__(self, node: UtxoNode, folder: Path) -> None:
        defined = LocalUtxoNetwork("local", node.url)
        path = folder / "networks.toml"
        path.write_text(defined.as_toml())
        self.network = load_networks(path, {defined.variable: node.url})["local"]
        self._node = node
        self._world = UtxoWorld(node)
        self._world.mature(40)
        self._wallets = [self._world.address(kind) for kind in ("p2wpkh", "p2pkh", "p2sh-p2wpkh", "p2wsh", "p2tr")]
        # Older outputs, which are spent before and after the opening.
        self._world.pay([(self._wallets[0], 10**8 + number) for number in range(6)])
        self.opening = self._world.mine() + 3
        self._world.mine(2)
        self.addresses: dict[Kind, str] = {"native": self._wallets[0]}
        self.idle = self._world.address()
        self._move(7)

    def _move(self, blocks: int) -> None:
        """Mine blocks; every second one has movements."""
        one, *others = self._wallets
        for number in range(blocks):
            if number % 2:
                self._world.pay([(others[number % 4], 10**7), (one, 10**6)], senders=[one])
                self._world.pay({one: 10**7 + number}, senders=[self._world.miner])
                self._world.pay([(other, 10**7) for other in others])
            self._world.mine()

    def head(self) -> int:
        return self._node.head()

    def block(self, number: int) -> Block:
        answer = self._node.rpc("getblockheader", self._node.block_hash(number))
        return Block(answer["hash"], answer.get("previousblockhash", 64 * "0"), int(answer["mediantime"]))

    def keys(self, kind: Kind) -> dict[str, set[tuple[object, ...]]]:
        assert kind == "native"
        address = self.addresses[kind]
        own = [one for one in ChainOracle(self._node).transactions(address) if one.height >= self.opening]
        return {
            "utxo_transactions": {(one.height, one.index, address) for one in own},
            "utxo_outputs": {
                (one.height, one.index, output.index, address)
                for one in own
                for output in one.outputs
                if output.address == address
            },
        }

    def balance(self, token: str, holder: str, number: int) -> int:
        assert token == "native"
        return ChainOracle(self._node).balance(holder, number)

    def supply(self, token: str, number: int) -> int:
        raise NotImplementedError

    def creation(self, token: str) -> int:
        raise NotImplementedError

    def likely_holders(self, token: str) -> set[str]:
        raise NotImplementedError

    def senders(self, number: int) -> dict[str, str]:
        raise NotImplementedError

    def replace_tail(self, blocks: int) -> None:
        self._world.reorganise(blocks, 0)
        self._move(blocks + 1)

    def elsewhere(self) -> Network:
        own = own_utxo_definition(self.network)
        return replace(self.network, own=replace(own, genesis_hash=64 * "a"))


@contextmanager
def _utxo(folder: Path) -> Iterator[Chain]:
    with UtxoNode() as node:
        yield UtxoChain(node, folder)


CHAINS: dict[str, Callable[[Path], AbstractContextManager[Chain]]] = {"evm": _evm, "utxo": _utxo}
