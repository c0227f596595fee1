"""A made-up network and the pipeline's raw rows about it, cycle by cycle: input of the transformation tests.

The network's true balances also change without any transfer (rebasing, fees, silent changes), so that readings
contradict movements. Rows follow the pipeline's rules: they lie inside some view, and each cycle also writes their
coverage and its marks in raw.changes. The module does not depend on how the marts are computed.
"""

import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.raw.database import open_warehouse

NETWORK = "local"
ZERO = "0x" + "0" * 40
GENESIS_TIME = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
NATIVE = "native"


def address(number: int) -> str:
    """A 0x address that is recognisable in a failure."""
    return f"0x{number:040x}"


def replace_raw(warehouse: Path, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    """Replace the content of raw tables."""
    with open_warehouse(warehouse) as connection:
        for table, content in rows.items():
            connection.execute(f"delete from raw.{table}")
            if content:
                connection.register("incoming", pa.Table.from_pylist(content))
                connection.execute(f"insert into raw.{table} by name select * from incoming")
                connection.unregister("incoming")


def _map_text(batches: dict[str, int]) -> str:
    """Return the text of a map in DuckDB's syntax."""
    return "{" + ", ".join(f"{tenant}={batch}" for tenant, batch in batches.items()) + "}"


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


class View(NamedTuple):
    """A row of raw.view_ranges: a tracking window or a history request; `last` is None while a window is open."""

    origin: str
    key: int
    subject: int
    first: int
    last: int | None
    native: str | None


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


class Internal(NamedTuple):
    """A row of raw.internal_transfers."""

    block: int
    position: int
    trace: int
    sender: str
    recipient: str
    amount: int
    batch: int


class Reading(NamedTuple):
    """A row of raw.balance_observations; `visible_to` maps each tenant that may see it to the first such batch."""

    token: str
    holder: str
    block: int
    quantity: int | None
    purpose: str
    batch: int
    visible_to: dict[str, int]


class Supply(NamedTuple):
    """A row of raw.supply_observations; `visible_to` is the same as in `Reading`."""

    token: str
    block: int
    quantity: int | None
    batch: int
    visible_to: dict[str, int]


class Coverage(NamedTuple):
    """A row of raw.coverage."""

    kind: str
    address: str
    first: int
    last: int
    data_set: str | None = None


class World:
    """The network, what tenants track of it, and the raw rows collected so far."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.head = -1
        # The head of the last successful cycle.
        self.known_head = -1
        self.final: int | None = None
        self.fork = 0
        self.batch = 0
        self.hashes: dict[int, str] = {}
        self.truth: list[dict[tuple[str, str], int]] = []
        self.chain_transfers: dict[int, list[Transfer]] = defaultdict(list)
        self.chain_transactions: dict[int, list[Transaction]] = defaultdict(list)
        self.chain_internals: dict[int, list[Internal]] = defaultdict(list)
        self.subjects: dict[int, Subject] = {}
        self.views: dict[tuple[str, int], View] = {}
        # Windows that a reorganisation unresolved.
        self.unresolved: set[tuple[str, int]] = set()
        # Contract metadata by (tenant, token): each tenant has its own reading.
        self.metadata: dict[tuple[str, str], tuple[str, str | None, int | None]] = {}
        self.common: dict[str, str] = {}
        # Creation blocks by (tenant, token), for tenants that requested the history from creation.
        self.creations: dict[tuple[str, str], int] = {}
        self.transfers: list[Transfer] = []
        self.transactions: list[Transaction] = []
        self.internals: list[Internal] = []
        # Transfers that the provider omitted without an error.
        self.left_out: list[Transfer] = []
        self.readings: list[Reading] = []
        self.supplies: list[Supply] = []
        # Holders that a search found, by (subject, holder), with the batch; they may appear in no movement.
        self.found: dict[tuple[int, str], int] = {}
        self.coverage: list[Coverage] = []
        self.changes: list[tuple[int, int, int, int | None, str]] = []
        self.failures: list[tuple[int, int, int]] = []
        self.forks: list[tuple[int, int]] = []
        self.tokens: list[str] = []
        # Tokens that charge a fee on each transfer, and tokens that rebase.
        self.charging: set[str] = set()
        self.rebasing: set[str] = set()
        self.holders: list[str] = []
        self.transformed: int | None = None
        # Tenants for which the pipeline reads; None: all.
        self.acting: Collection[str] | None = None

    # The chain itself

    def mine(self, to_block: int) -> None:
        """Add blocks with random transfers, transactions and unexplained changes."""
        for block in range(self.head + 1, to_block + 1):
            state = dict(self.truth[-1]) if self.truth else {}
            self.hashes[block] = f"0x{block:08x}{self.fork:056x}"
            self.chain_transfers[block] = []
            self.chain_transactions[block] = []
            self.chain_internals[block] = []
            for index in range(self.random.randrange(4) if block else 0):
                if self.random.random() < 0.6:
                    self._transfer(state, block, index)
                else:
                    self._transact(state, block, index)
            self._change_silently(state)
            self.truth.append(state)
        self.head = to_block

    def _change_silently(self, state: dict[tuple[str, str], int]) -> None:
        if self.random.random() < 0.2:
            conforming = self.charging | self.rebasing
            token = self.random.choice([*(name for name in self.tokens if name not in conforming), NATIVE])
            pair = (token, self.random.choice(self.holders))
            state[pair] = max(0, state.get(pair, 0) + self.random.randrange(-50, 1000))
        for token in sorted(self.rebasing):
            if self.random.random() < 0.1:
                for pair, quantity in state.items():
                    if pair[0] == token and pair[1] != ZERO:
                        state[pair] = quantity + quantity // 100 + 1

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
            kept = amount // 50 if token in self.charging and sender != ZERO else 0
            state[token, recipient] = state.get((token, recipient), 0) + amount - kept
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
            self._call(state, block, index)
        self.chain_transactions[block].append(
            Transaction(block, index, sender, recipient, created, value, fee, is_success, 0)
        )

    def _call(self, state: dict[tuple[str, str], int], block: int, index: int) -> None:
        for trace in range(self.random.randrange(3)):
            payer, payee = self.random.sample(sorted(set(self.holders)), 2)
            amount = self.random.randrange(1, 10**20)
            state[NATIVE, payer] = state.get((NATIVE, payer), 10**40) - amount
            state[NATIVE, payee] = state.get((NATIVE, payee), 10**40) + amount
            self.chain_internals[block].append(Internal(block, index, trace, payer, payee, amount, 0))

    def supply(self, token: str, block: int) -> int:
        """The total supply that the contract reports at the end of the block."""
        return self.truth[block].get((token, ZERO), 0)

    def balance(self, token: str, holder: str, block: int) -> int:
        """The true balance at the end of the block."""
        return self.truth[block].get((token, holder), 10**40 if token == NATIVE else 0)

    def fork_at(self, ancestor: int) -> None:
        """Orphan all blocks after the ancestor and delete their rows; mark affected windows as unresolved."""
        self.fork += 1
        self.forks.append((self.batch, ancestor))
        self.head = ancestor
        del self.truth[ancestor + 1 :]
        self.hashes = {block: name for block, name in self.hashes.items() if block <= ancestor}
        self.transfers = [row for row in self.transfers if row.block <= ancestor]
        self.transactions = [row for row in self.transactions if row.block <= ancestor]
        self.internals = [row for row in self.internals if row.block <= ancestor]
        self.left_out = [row for row in self.left_out if row.block <= ancestor]
        self.readings = [row for row in self.readings if row.block <= ancestor]
        self.supplies = [row for row in self.supplies if row.block <= ancestor]
        self.coverage = [row._replace(last=min(row.last, ancestor)) for row in self.coverage if row.first <= ancestor]
        for tenant, token in [key for key, block in self.creations.items() if block > ancestor]:
            del self.creations[tenant, token]
            self._mark_contract(token, tenant)
        for key in {view.subject for view in self.views.values() if view.last is None or view.last >= ancestor}:
            self.mark(key, ancestor + 1, None, "Reorganisation")
        self.unresolved |= {
            name
            for name, view in self.views.items()
            if view.origin == "Window" and (view.first > ancestor or (view.last is not None and view.last >= ancestor))
        }

    # Tenants' configuration

    def add(self, subject: Subject) -> None:
        """Configure a token or wallet."""
        self.subjects[subject.key] = subject
        self.mark(subject.key, 0, None, "View")

    def remove(self, key: int) -> None:
        """Remove a subject and its views without a mark."""
        del self.subjects[key]
        self.views = {name: view for name, view in self.views.items() if view.subject != key}

    def track(self, key: int, subject: int, first: int, last: int | None = None, native: str = "full") -> None:
        """Open a window, or close it."""
        mode = native if self.subjects[subject].kind == "wallet" else None
        self.views["Window", key] = View("Window", key, subject, first, last, mode)
        self.mark(subject, 0, None, "View")

    def request(self, key: int, subject: int, first: int, last: int, native: str = "full") -> None:
        """Request a past range; without a mark, because coverage shows the new blocks."""
        mode = native if self.subjects[subject].kind == "wallet" else None
        self.views["History", key] = View("History", key, subject, first, min(last, self.head), mode)

    def cancel(self, key: int) -> None:
        """Cancel a request without a mark; keep the gapless range collected from its first block on."""
        view = self.views["History", key]
        visible, last = self.visible(self.subjects[view.subject]), view.first - 1
        while last + 1 in visible and last != view.last:
            last += 1
        if last < view.first:
            del self.views["History", key]
        else:
            self.views["History", key] = view._replace(last=last)

    def describe(
        self, token: str, status: str, symbol: str | None, decimals: int | None, tenant: str | None = None
    ) -> None:
        """Set a contract's metadata as read for one tenant, or for both."""
        for one in ("ten_a", "ten_b") if tenant is None else (tenant,):
            self.metadata[one, token] = (status, symbol, decimals)
            self._mark_contract(token, one)

    def contract(self, tenant: str, token: str) -> tuple[str, str | None, int | None]:
        """Status, symbol and decimals of a contract as a tenant knows it."""
        return self.metadata.get((tenant, token), ("Unknown", None, None))

    def create(self, token: str, block: int, tenant: str) -> None:
        """Store a token's creation block for a tenant."""
        self.creations[tenant, token] = block
        self._mark_contract(token, tenant)

    def _mark_contract(self, token: str, tenant: str) -> None:
        for subject in self.subjects.values():
            if (subject.kind == "wallet" or subject.address == token) and tenant == subject.tenant:
                self.mark(subject.key, 0, None, "Metadata")

    def finalize(self, final: int) -> None:
        """Move the final block."""
        first = -1 if self.final is None else self.final
        for key in self.subjects:
            self.mark(key, first + 1, final, "Finality")
        self.final = final

    def mark(self, key: int, first: int, last: int | None, reason: str) -> None:
        """Write a row of raw.changes; skip rows outside all views of the subject."""
        rows = set() if last is None else set(range(first, last + 1))
        if reason == "Rows" and not any(
            view.subject == key and rows & self.blocks_of(view) for view in self.views.values()
        ):
            return
        self.changes.append((self.batch, key, first, last, reason))

    @contextmanager
    def only(self, tenants: Collection[str]) -> Iterator[None]:
        """Read only for these tenants."""
        self.acting = tenants
        yield
        self.acting = None

    def _acts(self, subject: Subject) -> bool:
        return self.acting is None or subject.tenant in self.acting

    # The pipeline's collection

    def resolved(self, subject: Subject) -> list[View]:
        """The subject's windows that have begun, and its requests."""
        return [
            view
            for name, view in self.views.items()
            if view.subject == subject.key
            and name not in self.unresolved
            and (view.origin == "History" or view.first <= self.head)
        ]

    def blocks_of(self, view: View) -> set[int]:
        """The blocks that a view asks for, up to the head."""
        return set(range(view.first, (self.head if view.last is None else min(view.last, self.head)) + 1))

    def collected(self, kind: str, where: str) -> set[int]:
        """The blocks that were collected for an address."""
        return {block for row in self.coverage if row[:2] == (kind, where) for block in range(row.first, row.last + 1)}

    def visible_native(self, subject: Subject) -> set[int]:
        """The blocks in which the tenant sees the wallet's transactions and internal transfers."""
        asked = {block for view in self.resolved(subject) if view.native == "full" for block in self.blocks_of(view)}
        return asked & self.collected("wallet", subject.address) & self.collected("native", subject.address)

    def visible(self, subject: Subject) -> set[int]:
        """The blocks in which the tenant sees the subject; in full views only with the transactions."""
        asked = {block for view in self.resolved(subject) if view.native != "full" for block in self.blocks_of(view)}
        return asked & self.collected(subject.kind, subject.address) | self.visible_native(subject)

    def covered(self, subject: Subject) -> list[tuple[int, int]]:
        """The visible blocks as (first, last) ranges."""
        visible = self.visible(subject)
        firsts = sorted(block for block in visible if block - 1 not in visible)
        lasts = sorted(block for block in visible if block + 1 not in visible)
        return list(zip(firsts, lasts, strict=True))

    def resolve(self) -> None:
        """Resolve the windows that a reorganisation left unresolved."""
        for name in sorted(self.unresolved & self.views.keys()):
            self.mark(self.views[name].subject, 0, None, "View")
        self.unresolved.clear()

    def collect(self, missing: Set[tuple[str, str, int]] = frozenset(), history: int = 8) -> None:
        """Collect all blocks of windows, and some blocks of each request.

        Args:
            missing: (kind, address, block) that the provider fails to give.
            history: blocks per request, address and kind.
        """
        for view in list(self.views.values()):
            subject = self.subjects[view.subject]
            for kind in [subject.kind, "native"] if view.native == "full" else [subject.kind]:
                wanted = sorted(self.blocks_of(view) - self.collected(kind, subject.address))
                if view.origin == "History":
                    order = self.random.choice([1, 1, -1])
                    wanted = sorted(wanted[::order][:history])
                for block in wanted:
                    if (kind, subject.address, block) in missing:
                        self.failures.append((self.batch, block, block))
                    else:
                        self._collect_block(kind, subject.address, block)
        self.known_head = self.head

    def _collect_block(self, kind: str, where: str, block: int) -> None:
        rows = 0
        for transfer in self.chain_transfers[block]:
            concerned = {"token": where == transfer.token, "wallet": where in (transfer.sender, transfer.recipient)}
            if concerned.get(kind):
                rows += 1
                if any((row.block, row.log) == (block, transfer.log) for row in self.transfers):
                    continue
                if self.random.random() < 0.05:
                    self.left_out.append(transfer)
                else:
                    self._add(transfer)
        if kind == "native":
            for transaction in self.chain_transactions[block]:
                if where in (transaction.sender, transaction.recipient, transaction.created):
                    rows += 1
                    if not any((row.block, row.position) == transaction[:2] for row in self.transactions):
                        self.transactions.append(transaction._replace(batch=self.batch))
            for internal in self.chain_internals[block]:
                if where in (internal.sender, internal.recipient):
                    rows += 1
                    if not any(row[:3] == internal[:3] for row in self.internals):
                        self.internals.append(internal._replace(batch=self.batch))
        # Files have some of the transfers, and none of the native movements.
        data_set = {0: "aws", 1: "cryo"}.get(block // 3 % 4) if kind != "native" else None
        for position, row in enumerate(self.coverage):
            if row == (kind, where, row.first, block - 1, data_set):
                self.coverage[position] = row._replace(last=block)
                break
        else:
            self.coverage.append(Coverage(kind, where, block, block, data_set))
        if rows:
            for subject in self.subjects.values():
                if (subject.kind, subject.address) == ("wallet" if kind == "native" else kind, where):
                    self.mark(subject.key, block, block, "Rows")

    def verify(self) -> None:
        """Read final blocks a second time, and add the omitted transfers."""
        for row in sorted({row for row in self.left_out if self.final is not None and row.block <= self.final}):
            self._add(row)

    def _add(self, transfer: Transfer) -> None:
        self.transfers.append(transfer._replace(batch=self.batch))
        if transfer not in self.left_out:
            return
        # Other subjects with this block were collected without the transfer.
        self.left_out = [row for row in self.left_out if row != transfer]
        for subject in self.subjects.values():
            concerned = (transfer.token,) if subject.kind == "token" else (transfer.sender, transfer.recipient)
            if subject.address in concerned:
                self.mark(subject.key, max(transfer.block - 2, 1), transfer.block + 2, "Rows")

    def read(self, token: str, holder: str, block: int, purpose: str, tenant: str) -> None:
        """Read a balance for a tenant, or share an existing reading; 3 % of new readings have no number."""
        for position, row in enumerate(self.readings):
            if row[:3] == (token, holder, block):
                if tenant in row.visible_to:
                    return
                seen_by = row.visible_to | {tenant: self.batch}
                self.readings[position] = row._replace(batch=self.batch, visible_to=seen_by)
                break
        else:
            quantity = None if self.random.random() < 0.03 else self.balance(token, holder, block)
            self.readings.append(Reading(token, holder, block, quantity, purpose, self.batch, {tenant: self.batch}))
        for subject in self.subjects.values():
            if subject.tenant == tenant and (
                (subject.kind == "token" and subject.address == token)
                or (subject.kind == "wallet" and subject.address == holder)
            ):
                self.mark(subject.key, block, block, "Observation")

    def read_supply(self, token: str, block: int, tenant: str) -> None:
        """Read a total supply for a tenant, in the same way as a balance."""
        for position, row in enumerate(self.supplies):
            if row[:2] == (token, block):
                if tenant in row.visible_to:
                    return
                seen_by = row.visible_to | {tenant: self.batch}
                self.supplies[position] = row._replace(batch=self.batch, visible_to=seen_by)
                break
        else:
            quantity = None if self.random.random() < 0.03 else self.supply(token, block)
            self.supplies.append(Supply(token, block, quantity, self.batch, {tenant: self.batch}))
        for subject in self.subjects.values():
            if (subject.kind, subject.tenant, subject.address) == ("token", tenant, token):
                self.mark(subject.key, block, block, "Observation")

    def observe(self) -> None:
        """Make a cycle's readings: most of the required ones, and some random ones."""
        for subject in filter(self._acts, list(self.subjects.values())):
            visible, ranges = self.visible(subject), self.covered(subject)
            moved = {
                (row.token, holder)
                for row in self.transfers
                for holder in (row.sender, row.recipient)
                if holder != ZERO
                and row.block in visible
                and subject.address == (row.token if subject.kind == "token" else holder)
            }
            listed = (
                {(token, subject.address) for token in [NATIVE, *self.common]} if subject.kind == "wallet" else set()
            )
            for first, last in ranges:
                for token, holder in sorted(moved | listed):
                    # The node has pruned some states, so these readings fail.
                    if random.Random(f"{token} {holder} {first}").random() < 0.7 and self.random.random() < 0.8:
                        self.read(token, holder, first - 1, "Anchor", subject.tenant)
                    if last < self.head and self.random.random() < 0.5:
                        self.read(token, holder, last, "Closing", subject.tenant)
                if subject.kind == "token" and self.random.random() < 0.8:
                    self.read_supply(subject.address, first - 1, subject.tenant)
                if subject.kind == "wallet" and self.random.random() < 0.5:
                    block = self.random.randint(first, last)
                    self.read(NATIVE, subject.address, block, "Narrowing", subject.tenant)
            for token, holder in sorted(moved):
                if self.random.random() < 0.3:
                    self.read(token, holder, self.head, "Check", subject.tenant)
            if subject.kind == "token" and self.random.random() < 0.8:
                self.read_supply(subject.address, self.head, subject.tenant)
            if subject.kind == "token" and ranges and self.random.random() < 0.2:
                self._find(subject, ranges[-1][1])
        for _ in range(30):
            token = self.random.choice([*self.tokens, NATIVE])
            holder = self.random.choice(self.holders)
            block = self.random.randrange(self.head + 1)
            self.read(token, holder, block, "Sample", self.random.choice(sorted(self.acting or {"ten_a", "ten_b"})))

    def _find(self, subject: Subject, block: int) -> None:
        """Find a random holder, with or without movements."""
        holder = self.random.choice(self.holders)
        self.read(subject.address, holder, block, "Check", subject.tenant)
        self.found.setdefault((subject.key, holder), self.batch)

    # The raw schema

    def begin(self) -> None:
        """Begin a cycle."""
        self.batch += 1

    def _place_of(self, row: Transfer | Transaction | Internal) -> dict[str, Any]:
        return {
            "network": NETWORK,
            "block_number": row.block,
            "block_hash": self.hashes[row.block],
            "transaction_index": row.position,
            "transaction_hash": f"0xt{row.block}-{row.position}",
        }

    def write(self, warehouse: Path) -> None:
        """Write all rows of the raw schema as they are after the cycle."""
        time = {block: GENESIS_TIME + timedelta(seconds=12 * block) for block in range(-1, self.head + 100)}
        rows: dict[str, list[dict[str, object]]] = {
            "batches": [{"batch_id": self.batch, "run_id": "run", "started_at": GENESIS_TIME}],
            "reorganisations": [
                {
                    "batch_id": batch,
                    "network": NETWORK,
                    "ancestor_block": ancestor,
                    "orphaned_block": ancestor + 1,
                    "orphaned_hash": "0x",
                    "canonical_hash": "0x",
                    "removed_rows": 0,
                    "seen_at": GENESIS_TIME,
                }
                for batch, ancestor in self.forks
            ],
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
                    "window_key": view.key,
                    "subject_key": view.subject,
                    "opened_at": time[min(view.first, self.head + 50)],
                }
                for view in self.views.values()
                if view.origin == "Window"
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
                    "head_number": self.known_head,
                    "final_number": self.final,
                    "status_since": GENESIS_TIME,
                    "failures_in_a_row": 0,
                    "probed_at": GENESIS_TIME,
                    "batch_id": self.batch,
                }
            ],
            "view_ranges": [
                {
                    "origin": view.origin,
                    "origin_key": view.key,
                    "subject_key": view.subject,
                    "network": NETWORK,
                    "from_block": view.first,
                    "to_block": view.last,
                    "native": view.native,
                }
                for subject in self.subjects.values()
                for view in self.resolved(subject)
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
                    "data_set": row.data_set,
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
                    **self._place_of(row),
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
                    **self._place_of(row),
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
            "internal_transfers": [
                {
                    **self._place_of(row),
                    "trace_index": row.trace,
                    "from_address": row.sender,
                    "to_address": row.recipient,
                    "amount_raw": str(row.amount),
                    "kind": "call",
                    "batch_id": row.batch,
                }
                for row in self.internals
            ],
            "token_metadata": [
                {
                    "network": NETWORK,
                    "token_address": token,
                    "contract_status": status,
                    "symbol": symbol,
                    "decimals": decimals,
                    "read_at": GENESIS_TIME,
                    "tenant_id": tenant,
                }
                for (tenant, token), (status, symbol, decimals) in self.metadata.items()
            ],
            "token_creations": [
                {"network": NETWORK, "token_address": token, "block_number": block, "tenant_id": tenant}
                for (tenant, token), block in self.creations.items()
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
                    "visible_to": _map_text(row.visible_to),
                }
                for row in self.readings
            ],
            "found_holders": [
                {"network": NETWORK, "subject_key": key, "holder_address": holder, "batch_id": batch}
                for (key, holder), batch in self.found.items()
            ],
            "supply_observations": [
                {
                    "network": NETWORK,
                    "token_address": row.token,
                    "block_number": row.block,
                    "block_hash": self.hashes[row.block],
                    "total_supply_raw": None if row.quantity is None else str(row.quantity),
                    "batch_id": row.batch,
                    "visible_to": _map_text(row.visible_to),
                }
                for row in self.supplies
            ],
            "changes": [
                {"batch_id": batch, "subject_key": key, "from_block": first, "to_block": last, "reason": reason}
                for batch, key, first, last, reason in self.changes
            ],
        }
        replace_raw(warehouse, rows)
