"""Expected rows of the raw tables, read from the node by web3.py and computed block by block.

The module uses neither the service's extraction nor its SQL.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from web3 import Web3
from web3.providers import BaseProvider
from web3.types import RPCEndpoint, RPCResponse

from control.snapshot import ControlSnapshot, read_snapshot
from tests.chain.artifacts import artifact
from tests.chain.node import AnvilNode
from tests.chain.world import TRANSFER_TOPIC, ZERO_ADDRESS
from tests.integration.harness import Service

Row = tuple[Any, ...]


class _NodeProvider(BaseProvider):
    """web3.py over the node's own connection."""

    def __init__(self, node: AnvilNode) -> None:
        super().__init__()
        self.node = node

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        return {"jsonrpc": "2.0", "id": 1, "result": self.node.rpc(method, params)}


class Oracle:
    """The truth about one network of a service, from the current state of its node."""

    def __init__(self, service: Service, node: AnvilNode, network: str = "local") -> None:
        self.network = network
        self.node = node
        with service.store.read() as session:
            self.snapshot: ControlSnapshot = read_snapshot(session, 0)
        self.head = node.head()
        blocks = node.batch([("eth_getBlockByNumber", [hex(n), True]) for n in range(self.head + 1)])
        self.blocks: list[dict[str, Any]] = blocks
        self.times = [int(block["timestamp"], 16) for block in blocks]
        self.hashes = [str(block["hash"]) for block in blocks]

    def view(self) -> dict[tuple[str, str], set[int]]:
        """The collected blocks of each (kind, address): all that lie in some tenant's window, up to the head."""
        blocks: dict[tuple[str, str], set[int]] = defaultdict(set)
        for subject in self.snapshot.tables["control_subjects"]:
            if subject.network != self.network:
                continue
            for window in self.snapshot.tables["control_windows"]:
                if window.subject_key == subject.subject_key:
                    opened = window.opened_at.timestamp()
                    closed = window.closed_at.timestamp() if window.closed_at else float("inf")
                    blocks[subject.kind, subject.address] |= {
                        number for number, time in enumerate(self.times) if number > 0 and opened <= time < closed
                    }
        return {key: numbers for key, numbers in blocks.items() if numbers}

    def coverage(self) -> list[Row]:
        """(network, kind, address, from, to) of maximal ranges, in order."""
        rows = []
        for (kind, address), numbers in self.view().items():
            for first in sorted(numbers):
                if first - 1 not in numbers:
                    last = first
                    while last + 1 in numbers:
                        last += 1
                    kinds = [kind] if kind == "token" else ["wallet", "native"]
                    rows += [(self.network, one, address, first, last) for one in kinds]
        return sorted(rows)

    def transfers(self) -> list[Row]:
        """(block, log index, hash, transaction hash, token, from, to, amount) in some view, decoded by web3.py."""
        view = self.view()
        return sorted(
            row
            for row in self.all_transfers()
            if row[0] in view.get(("token", row[4]), ())
            or any(row[0] in view.get(("wallet", party), ()) for party in row[5:7])
        )

    def all_transfers(self) -> Iterator[Row]:
        """Yield all transfers of the chain with the columns of `transfers`."""
        web3 = Web3(_NodeProvider(self.node))
        event = web3.eth.contract(abi=artifact("TestToken").abi).events.Transfer()
        logs = web3.eth.get_logs({"fromBlock": 0, "toBlock": self.head, "topics": [TRANSFER_TOPIC]})
        for log in logs:
            if len(log["topics"]) != 3:
                continue
            decoded = event.process_log(log)
            sender, receiver, amount = decoded["args"].values()
            yield (
                decoded["blockNumber"],
                decoded["logIndex"],
                decoded["blockHash"].to_0x_hex(),
                decoded["transactionHash"].to_0x_hex(),
                decoded["address"].lower(),
                sender.lower(),
                receiver.lower(),
                amount,
            )

    def transactions(self) -> list[Row]:
        """(block, index, hash, from, to, created, value, fee, gas, success) of wallets, in their views."""
        view = self.view()
        wallets = {address for kind, address in view if kind == "wallet"}
        rows = []
        for number, block in enumerate(self.blocks):
            involved = [
                item
                for item in block["transactions"]
                if any(party in wallets and number in view["wallet", party] for party in (item["from"], item.get("to")))
            ]
            for item in involved:
                receipt = self.node.rpc("eth_getTransactionReceipt", [item["hash"]])
                gas, price = int(receipt["gasUsed"], 16), int(receipt["effectiveGasPrice"], 16)
                rows.append(
                    (
                        number,
                        int(item["transactionIndex"], 16),
                        item["hash"],
                        item["from"],
                        item.get("to"),
                        receipt.get("contractAddress"),
                        int(item["value"], 16),
                        gas * price,
                        gas,
                        receipt["status"] == "0x1",
                    )
                )
        return sorted(rows, key=lambda row: row[:2])

    def balance(self, token: str, holder: str, block_hash: str) -> int:
        """Return a holder's balance at the end of a block, from the node."""
        at = {"blockHash": block_hash}
        if token == "native":
            return int(self.node.rpc("eth_getBalance", [holder, at]), 16)
        data = "0x70a08231" + holder[2:].rjust(64, "0")
        return int(self.node.rpc("eth_call", [{"to": token, "data": data}, at]), 16)


def check_truth(service: Service, node: AnvilNode, network: str = "local") -> None:
    """Assert that transfers, transactions, coverage, headers and readings of a network are exactly the node's."""
    oracle = Oracle(service, node, network)
    transfers = service.query(
        """
        select
            block_number, log_index, block_hash, transaction_hash, token_address, from_address, to_address,
            amount_raw::varchar
        from raw.token_transfers where network = ? order by 1, 2
        """,
        [network],
    )
    assert [(*row[:7], int(row[7])) for row in transfers] == oracle.transfers()
    transactions = service.query(
        """
        select
            block_number, transaction_index, transaction_hash, from_address, to_address, created_address,
            value_raw::varchar, fee_raw::varchar, gas_used, is_success
        from raw.transactions where network = ? order by 1, 2
        """,
        [network],
    )
    assert [(*row[:6], int(row[6]), int(row[7]), *row[8:]) for row in transactions] == oracle.transactions()
    coverage = [row[:5] for row in service.raw_rows()["coverage"] if row[0] == network]
    assert coverage == oracle.coverage()
    headers = service.query(
        "select block_number, block_hash, parent_hash, epoch(block_time)::bigint from raw.blocks where network = ?",
        [network],
    )
    assert headers
    for number, block_hash, parent_hash, time in headers:
        block = oracle.blocks[number]
        assert (block_hash, parent_hash, time) == (block["hash"], block["parentHash"], oracle.times[number])
    observations = service.query(
        """
        select token_address, holder_address, block_number, block_hash, quantity_raw::varchar
        from raw.balance_observations where network = ?
        """,
        [network],
    )
    for token, holder, number, block_hash, quantity in observations:
        assert block_hash == oracle.hashes[number]
        assert int(quantity) == oracle.balance(token, holder, block_hash), (token, holder, number)
    assert len(observations) == len({row[:3] for row in observations}), "a balance was read twice at one block"


def check_anchors(service: Service, node: AnvilNode, network: str = "local") -> int:
    """Assert that all holders with movements in a window have a reading at the block before it; return their number.

    Views begin after the genesis block, and the zero address needs no reading.
    """
    oracle = Oracle(service, node, network)
    known = {
        row[:3]
        for row in service.query(
            "select token_address, holder_address, block_number from raw.balance_observations where network = ?",
            [network],
        )
    }
    wanted = set()
    moved = list(oracle.all_transfers())
    for subject in oracle.snapshot.tables["control_subjects"]:
        for window in oracle.snapshot.tables["control_windows"]:
            if window.subject_key != subject.subject_key or subject.network != network:
                continue
            opened = window.opened_at.timestamp()
            closed = window.closed_at.timestamp() if window.closed_at else float("inf")
            numbers = [number for number, time in enumerate(oracle.times) if number > 0 and opened <= time < closed]
            if not numbers:
                continue
            for number, _, _, _, token, sender, receiver, _ in moved:
                if number not in numbers:
                    continue
                if subject.kind == "token" and token == subject.address:
                    wanted |= {(token, party, numbers[0] - 1) for party in (sender, receiver)}
                if subject.kind == "wallet" and subject.address in (sender, receiver):
                    wanted.add((token, subject.address, numbers[0] - 1))
    wanted = {row for row in wanted if row[1] != ZERO_ADDRESS}
    assert wanted <= known, f"{len(wanted - known)} anchors are missing, such as {next(iter(wanted - known))}"
    return len(wanted)


def instant(node: AnvilNode, number: int) -> datetime:
    """The time of a block."""
    return datetime.fromtimestamp(node.block_time(number), UTC)
