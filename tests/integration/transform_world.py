"""A made-up network and the pipeline's raw rows about it, cycle by cycle: input of the transformation tests.

The network's true balances also change without any transfer (rebasing, internal native transfers), so that readings
contradict movements. What a cycle writes follows the pipeline's rules: rows only inside some view, coverage with the
rows, marks in raw.changes. Nothing here knows how the marts are computed.
"""

import random
from collections import defaultdict
from collections.abc import Set
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from pipelines.load.warehouse import open_warehouse

NETWORK = "local"
ZERO = "0x" + "0" * 40
GENESIS_TIME = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
NATIVE = "native"


def address(number: int) -> str:
    """A 0x address that is recognisable in a failure."""
    return f"0x{number:040x}"


class Subject(NamedTuple):
    """A row of raw.control_subjects."""

    key: int
    kind: str
    tenant: str
    ledger: str
    address: str

    @property
    def id(self) -> str:
        """The public id."""
        return f"{'tok' if self.kind == 'token' else 'wal'}_{self.key}"


class Window(NamedTuple):
    """A tracking window and the blocks it resolved to; `last` is None while open."""

    key: int
    subject: int
    first: int
    last: int | None


class Transfer(NamedTuple):
    """A row of raw.token_transfers."""

    block: int
    position: int
    log: int
    token: str
    sender: str
    recipient: str
    amount: int
    batch: int


class Transaction(NamedTuple):
    """A row of raw.transactions."""

    block: int
    position: int
    sender: str
    recipient: str | None
    created: str | None
    value: int
    fee: int | None
    is_success: bool | None
    batch: int


class Reading(NamedTuple):
    """A row of raw.balance_observations."""

    token: str
    holder: str
    block: int
    quantity: int | None
    purpose: str
    batch: int


class Supply(NamedTuple):
    """A row of raw.supply_observations."""

    token: str
    block: int
    quantity: int
    batch: int


class Coverage(NamedTuple):
    """A row of raw.coverage."""

    kind: str
    address: str
    first: int
    last: int


class World:
    """The network, what tenants track of it, and the raw rows collected so far."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.head = -1
        self.final: int | None = None
        self.fork = 0
        self.batch = 0
        self.hashes: dict[int, str] = {}
        self.truth: list[dict[tuple[str, str], int]] = []
        self.chain_transfers: dict[int, list[Transfer]] = defaultdict(list)
        self.chain_transactions: dict[int, list[Transaction]] = defaultdict(list)
        self.subjects: dict[int, Subject] = {}
        self.windows: dict[int, Window] = {}
        self.metadata: dict[str, tuple[str, str | None, int | None]] = {}
        self.common: dict[str, str] = {}
        self.transfers: list[Transfer] = []
        self.transactions: list[Transaction] = []
        self.readings: list[Reading] = []
        self.supplies: list[Supply] = []
        self.coverage: list[Coverage] = []
        self.changes: list[tuple[int, int, int, int | None, str]] = []
        self.failures: list[tuple[int, int, int]] = []
        self.tokens: list[str] = []
        self.holders: list[str] = []
        self.transformed: int | None = None

    # The chain itself

    def mine(self, to_block: int) -> None:
        """Add blocks with random transfers, transactions and unexplained changes."""
        for block in range(self.head + 1, to_block + 1):
            state = dict(self.truth[-1]) if self.truth else {}
            self.hashes[block] = f"0x{block:08x}{self.fork:056x}"
            self.chain_transfers[block] = []
            self.chain_transactions[block] = []
            for index in range(self.random.randrange(4)):
                if self.random.random() < 0.6:
                    self._transfer(state, block, index)
                else:
                    self._transact(state, block, index)
            if self.random.random() < 0.3:
                pair = (self.random.choice([*self.tokens, NATIVE]), self.random.choice(self.holders))
                state[pair] = max(0, state.get(pair, 0) + self.random.randrange(-50, 1000))
            self.truth.append(state)
        self.head = to_block

    def _amount(self) -> int:
        return self.random.choice([0, 1, self.random.randrange(10**6), self.random.randrange(2**200), 2**255])

    def _transfer(self, state: dict[tuple[str, str], int], block: int, index: int) -> None:
        token = self.random.choice(self.tokens)
        sender, recipient = self.random.choice([*self.holders, ZERO]), self.random.choice([*self.holders, ZERO])
        amount = self._amount()
        if sender != ZERO:
            amount = min(amount, state.get((token, sender), 0))
            state[token, sender] = state.get((token, sender), 0) - amount
        if recipient != ZERO:
            state[token, recipient] = state.get((token, recipient), 0) + amount
        state[token, ZERO] = (
            state.get((token, ZERO), 0) + (amount if sender == ZERO else 0) - (amount if recipient == ZERO else 0)
        )
        self.chain_transfers[block].append(Transfer(block, index, index * 3, token, sender, recipient, amount, 0))

    def _transact(self, state: dict[tuple[str, str], int], block: int, index: int) -> None:
        sender, recipient = self.random.choice(self.holders), self.random.choice([*self.holders, None])
        created = address(0xC0000 + block * 10 + index) if recipient is None else None
        value = self.random.choice([0, self.random.randrange(10**6), self.random.randrange(10**30)])
        fee = self.random.choice([None, 0, 21_000, 5 * 10**14])
        is_success = self.random.choice([True, True, True, False, None])
        state[NATIVE, sender] = state.get((NATIVE, sender), 10**40) - (fee or 0)
        if is_success or (is_success is None and self.random.random() < 0.5):
            target = recipient or created
            assert target is not None
            state[NATIVE, sender] -= value
            state[NATIVE, target] = state.get((NATIVE, target), 10**40) + value
        self.chain_transactions[block].append(
            Transaction(block, index, sender, recipient, created, value, fee, is_success, 0)
        )

    def supply(self, token: str, block: int) -> int:
        """The total supply that the contract reports at the end of the block."""
        return self.truth[block].get((token, ZERO), 0)

    def balance(self, token: str, holder: str, block: int) -> int:
        """The true balance at the end of the block."""
        return self.truth[block].get((token, holder), 10**40 if token == NATIVE else 0)

    def fork_at(self, ancestor: int) -> None:
        """Orphan every block after the ancestor, and the rows collected from them."""
        self.fork += 1
        self.head = ancestor
        del self.truth[ancestor + 1 :]
        self.hashes = {block: name for block, name in self.hashes.items() if block <= ancestor}
        self.transfers = [row for row in self.transfers if row.block <= ancestor]
        self.transactions = [row for row in self.transactions if row.block <= ancestor]
        self.readings = [row for row in self.readings if row.block <= ancestor]
        self.supplies = [row for row in self.supplies if row.block <= ancestor]
        self.coverage = [row._replace(last=min(row.last, ancestor)) for row in self.coverage if row.first <= ancestor]
        for key in self.subjects:
            self.mark(key, ancestor + 1, None, "Reorganisation")

    # What tenants configure

    def add(self, subject: Subject) -> None:
        """Configure a token or wallet."""
        self.subjects[subject.key] = subject
        self.mark(subject.key, 0, None, "View")

    def remove(self, key: int) -> None:
        """Remove a subject and its windows; nothing marks it."""
        del self.subjects[key]
        self.windows = {name: window for name, window in self.windows.items() if window.subject != key}

    def open(self, window: Window) -> None:
        """Open, or close, a window."""
        self.windows[window.key] = window
        self.mark(window.subject, 0, None, "View")

    def describe(self, token: str, status: str, symbol: str | None, decimals: int | None) -> None:
        """Set what the contract says of itself."""
        self.metadata[token] = (status, symbol, decimals)
        for subject in self.subjects.values():
            if subject.kind == "wallet" or subject.address == token:
                self.mark(subject.key, 0, None, "Metadata")

    def finalize(self, final: int) -> None:
        """Move the final block."""
        first = -1 if self.final is None else self.final
        for key in self.subjects:
            self.mark(key, first + 1, final, "Finality")
        self.final = final

    def mark(self, key: int, first: int, last: int | None, reason: str) -> None:
        """Write a row of raw.changes."""
        self.changes.append((self.batch, key, first, last, reason))

    # What the pipeline collects

    def collect(self, missing: Set[tuple[str, str, int]] = frozenset()) -> None:
        """Collect what the windows ask for, but for (kind, address, block) that the provider fails to give."""
        wanted: dict[tuple[str, str], set[int]] = defaultdict(set)
        for window in self.windows.values():
            subject = self.subjects[window.subject]
            last = self.head if window.last is None else min(window.last, self.head)
            wanted[subject.kind, subject.address] |= set(range(window.first, last + 1))
        for (kind, where), blocks in sorted(wanted.items()):
            covered = {
                block for row in self.coverage if row[:2] == (kind, where) for block in range(row.first, row.last + 1)
            }
            failed = {block for block in blocks if (kind, where, block) in missing}
            self.failures += [(self.batch, block, block) for block in failed]
            for block in sorted(blocks - covered - failed):
                self._collect_block(kind, where, block)

    def _collect_block(self, kind: str, where: str, block: int) -> None:
        rows = 0
        known = {(row.block, row.log) for row in self.transfers}
        for transfer in self.chain_transfers[block]:
            if where == transfer.token if kind == "token" else where in (transfer.sender, transfer.recipient):
                rows += 1
                if (block, transfer.log) not in known:
                    self.transfers.append(transfer._replace(batch=self.batch))
        if kind == "wallet":
            seen = {(row.block, row.position) for row in self.transactions}
            for transaction in self.chain_transactions[block]:
                if where in (transaction.sender, transaction.recipient, transaction.created):
                    rows += 1
                    if (block, transaction.position) not in seen:
                        self.transactions.append(transaction._replace(batch=self.batch))
        for position, row in enumerate(self.coverage):
            if row[:2] == (kind, where) and row.last == block - 1:
                self.coverage[position] = row._replace(last=block)
                break
        else:
            self.coverage.append(Coverage(kind, where, block, block))
        if rows:
            for subject in self.subjects.values():
                if (subject.kind, subject.address) == (kind, where):
                    self.mark(subject.key, block, block, "Rows")

    def read(self, token: str, holder: str, block: int, purpose: str) -> None:
        """Read a balance; sometimes the contract gives no number."""
        if any(row[:3] == (token, holder, block) and row.purpose == purpose for row in self.readings):
            return
        quantity = None if self.random.random() < 0.03 else self.balance(token, holder, block)
        self.readings.append(Reading(token, holder, block, quantity, purpose, self.batch))
        for subject in self.subjects.values():
            if (subject.kind == "token" and subject.address == token) or (
                subject.kind == "wallet" and subject.address == holder
            ):
                self.mark(subject.key, block, block, "Observation")

    def read_supply(self, token: str, block: int) -> None:
        """Read a total supply."""
        if any(row[:2] == (token, block) for row in self.supplies):
            return
        self.supplies.append(Supply(token, block, self.supply(token, block), self.batch))
        for subject in self.subjects.values():
            if subject.kind == "token" and subject.address == token:
                self.mark(subject.key, block, block, "Observation")

    def observe(self) -> None:
        """Make the readings of a cycle: most of what is owed, and some that nobody asked for."""
        touched = [
            (row.token, holder)
            for row in self.transfers
            for holder in (row.sender, row.recipient)
            if holder != ZERO and row.batch == self.batch
        ]
        for window in self.windows.values():
            subject = self.subjects[window.subject]
            if window.first > self.head:
                continue
            if window.first > 0:
                if subject.kind == "wallet":
                    for token in [NATIVE, *self.common]:
                        self.read(token, subject.address, window.first - 1, "Holdings")
                for token, holder in touched:
                    is_concerned = (
                        (subject.address == token) if subject.kind == "token" else (subject.address == holder)
                    )
                    if is_concerned and self.random.random() < 0.8:
                        self.read(token, holder, window.first - 1, "Anchor")
            if subject.kind == "token" and self.random.random() < 0.8:
                self.read_supply(subject.address, self.head)
        for token, holder in touched:
            if self.random.random() < 0.5:
                self.read(token, holder, self.head, "Check")
        for _ in range(6):
            token = self.random.choice([*self.tokens, NATIVE])
            holder = self.random.choice(self.holders)
            self.read(token, holder, self.random.randrange(self.head + 1), "Check")

    # The raw schema

    def begin(self) -> None:
        """Begin a cycle."""
        self.batch += 1

    def write(self, warehouse: Path) -> None:
        """Write everything as the raw schema holds it after the cycle."""
        time = {block: GENESIS_TIME + timedelta(seconds=12 * block) for block in range(-1, self.head + 100)}
        rows: dict[str, list[dict[str, object]]] = {
            "batches": [{"batch_id": self.batch, "run_id": "run", "started_at": GENESIS_TIME}],
            "transforms": []
            if self.transformed is None
            else [
                {
                    "batch_id": self.transformed,
                    "control_revision": 0,
                    "project_fingerprint": "",
                    "finished_at": GENESIS_TIME,
                }
            ],
            "control_tenants": [{"tenant_id": name, "tenant_name": name} for name in ("ten_a", "ten_b")],
            "control_subjects": [
                {
                    "subject_key": subject.key,
                    "subject_id": subject.id,
                    "kind": subject.kind,
                    "tenant_id": subject.tenant,
                    "ledger_id": subject.ledger,
                    "network": NETWORK,
                    "address": subject.address,
                    "created_at": GENESIS_TIME,
                }
                for subject in self.subjects.values()
            ],
            "control_windows": [
                {
                    "window_key": window.key,
                    "subject_key": window.subject,
                    "opened_at": time[min(window.first, self.head + 50)],
                }
                for window in self.windows.values()
            ],
            "networks": [
                {
                    "network": NETWORK,
                    "display_name": "Local",
                    "family": "evm",
                    "chain_id": 31337,
                    "is_testnet": True,
                    "is_enabled": True,
                    "native_symbol": "ETH",
                    "native_decimals": 18,
                }
            ],
            "common_tokens": [
                {"network": NETWORK, "token_address": token, "symbol": symbol, "decimals": 6}
                for token, symbol in self.common.items()
            ],
            "network_states": [
                {
                    "network": NETWORK,
                    "status": "Healthy",
                    "head_number": self.head,
                    "final_number": self.final,
                    "status_since": GENESIS_TIME,
                    "failures_in_a_row": 0,
                    "probed_at": GENESIS_TIME,
                    "batch_id": self.batch,
                }
            ],
            "window_ranges": [
                {
                    "window_key": window.key,
                    "subject_key": window.subject,
                    "network": NETWORK,
                    "from_block": window.first,
                    "to_block": window.last,
                }
                for window in self.windows.values()
                if window.first <= self.head
            ],
            "coverage": [
                {
                    "network": NETWORK,
                    "subject_kind": row.kind,
                    "address": row.address,
                    "from_block": row.first,
                    "to_block": row.last,
                    "row_count": 0,
                    "provider": "node",
                    "collected_at": GENESIS_TIME,
                    "batch_id": self.batch,
                }
                for row in self.coverage
            ],
            "collection_failures": [
                {
                    "batch_id": batch,
                    "network": NETWORK,
                    "call": "eth_getLogs",
                    "from_block": first,
                    "to_block": last,
                    "detail": "no answer",
                    "failed_at": GENESIS_TIME,
                }
                for batch, first, last in self.failures
            ],
            "blocks": [
                {
                    "network": NETWORK,
                    "block_number": block,
                    "block_hash": name,
                    "parent_hash": self.hashes.get(block - 1, "0x"),
                    "block_time": time[block],
                    "batch_id": self.batch,
                }
                for block, name in self.hashes.items()
            ],
            "token_transfers": [
                {
                    "network": NETWORK,
                    "block_number": row.block,
                    "block_hash": self.hashes[row.block],
                    "transaction_index": row.position,
                    "transaction_hash": f"0xt{row.block}-{row.position}",
                    "log_index": row.log,
                    "token_address": row.token,
                    "from_address": row.sender,
                    "to_address": row.recipient,
                    "amount_raw": str(row.amount),
                    "batch_id": row.batch,
                }
                for row in self.transfers
            ],
            "transactions": [
                {
                    "network": NETWORK,
                    "block_number": row.block,
                    "block_hash": self.hashes[row.block],
                    "transaction_index": row.position,
                    "transaction_hash": f"0xt{row.block}-{row.position}",
                    "from_address": row.sender,
                    "to_address": row.recipient,
                    "created_address": row.created,
                    "value_raw": str(row.value),
                    "fee_raw": None if row.fee is None else str(row.fee),
                    "is_success": row.is_success,
                    "batch_id": row.batch,
                }
                for row in self.transactions
            ],
            "token_metadata": [
                {
                    "network": NETWORK,
                    "token_address": token,
                    "contract_status": status,
                    "symbol": symbol,
                    "decimals": decimals,
                    "read_at": GENESIS_TIME,
                }
                for token, (status, symbol, decimals) in self.metadata.items()
            ],
            "balance_observations": [
                {
                    "network": NETWORK,
                    "token_address": row.token,
                    "holder_address": row.holder,
                    "block_number": row.block,
                    "block_hash": self.hashes[row.block],
                    "quantity_raw": None if row.quantity is None else str(row.quantity),
                    "purpose": row.purpose,
                    "batch_id": row.batch,
                }
                for row in self.readings
            ],
            "supply_observations": [
                {
                    "network": NETWORK,
                    "token_address": row.token,
                    "block_number": row.block,
                    "block_hash": self.hashes[row.block],
                    "total_supply_raw": str(row.quantity),
                    "batch_id": row.batch,
                }
                for row in self.supplies
            ],
            "changes": [
                {"batch_id": batch, "subject_key": key, "from_block": first, "to_block": last, "reason": reason}
                for batch, key, first, last, reason in self.changes
            ],
        }
        with open_warehouse(warehouse) as connection:
            for table, content in rows.items():
                connection.execute(f"delete from raw.{table}")
                if content:
                    connection.register("incoming", pa.Table.from_pylist(content))
                    connection.execute(f"insert into raw.{table} by name select * from incoming")
                    connection.unregister("incoming")
