"""Compares the API's answers to each tenant with the node: coverage, cap tables, balances, activities.

The node's answers are the truth, and the tenants' actions define what each may see. The service's tables are not read.
At the newest moment every number must equal the node's. An earlier number may differ if a later adjustment of the same
pair in the same range explains it: only later readings reveal changes without an event.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from web3 import Web3

from tests.chain.world import ZERO_ADDRESS, Token, World
from tests.e2e.checks import (
    NATIVE,
    NATIVE_DECIMALS,
    Verdict,
    balance_effect,
    decimal_text,
    percentage_text,
    wallet_kind,
)
from tests.e2e.client import ApiError
from tests.integration.misfortunes_system import HistoryRequest, Subject

Row = dict[str, Any]

_PAGE = 1000
# Compared moments between the two ends of each covered range; the ends are compared as well.
_BETWEEN = 2
_MADE_UP = ("Adjustment", "Internal")
# Fields of an activity that are equal in two rounds: only block hashes differ between their chains.
_TOLD = (
    "type",
    "date",
    "status",
    "direction",
    "fromWallet",
    "toWallet",
    "counterparty",
    "amountRaw",
    "transactionHash",
    "logIndex",
    "blockNumber",
)


class Range(NamedTuple):
    """Blocks `first` to `last`, both included."""

    first: int
    last: int


class Movement(NamedTuple):
    """The content of a Transfer event."""

    block: int
    log_index: int
    transaction: str
    token: str
    sender: str
    receiver: str
    amount: int


@dataclass
class Finding(Verdict):
    """A verdict that also counts rows explained by an adjustment."""

    explained: int = 0

    def explain(self) -> None:
        """Count one row that differs from the node and is explained by a listed adjustment."""
        self.total += 1
        self.explained += 1

    def require(self, is_so: bool, problem: str) -> None:
        """Add a problem unless the condition holds."""
        if not is_so:
            self.problems.append(problem)


@dataclass(frozen=True)
class Expectation:
    """Facts about a subject that only the script knows.

    Args:
        adjusted: holders (of a wallet: assets) that must have an adjustment; all others must not, unless `is_lying`.
        is_lying: whether adjustments may occur for any holder.
        behaviour: the token's behaviour as its detail must show it.
        internals: all traced payments of a wallet: (block, transaction hash, direction, amount, counterparty).
    """

    adjusted: frozenset[str] = frozenset()
    is_lying: bool = False
    behaviour: str | None = None
    internals: tuple[tuple[int, str, str, int, str], ...] | None = None


class Chain:
    """Cached answers of the node about a chain that no longer grows."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.head = world.node.head()
        blocks = world.node.batch([("eth_getBlockByNumber", [hex(n), True]) for n in range(self.head + 1)])
        self.times = [int(block["timestamp"], 16) for block in blocks]
        self.transactions: list[list[dict[str, Any]]] = [block["transactions"] for block in blocks]
        self.movements = [
            Movement(
                int(log["blockNumber"], 16),
                int(log["logIndex"], 16),
                log["transactionHash"],
                log["address"],
                "0x" + log["topics"][1][-40:],
                "0x" + log["topics"][2][-40:],
                int(log["data"], 16),
            )
            for log in world.transfer_logs(0, self.head)
        ]
        self.receipt = cache(lambda transaction: world.node.rpc("eth_getTransactionReceipt", [transaction]))
        self._balances: dict[tuple[str, str, int], int] = {}
        self._decimals: dict[str, int | None] = {NATIVE: NATIVE_DECIMALS}

    def span(self, opened: int, closed: int | None) -> Range:
        """Return the blocks from 1 on with a time in [opened, closed); the range is empty if last < first."""
        last = self.head if closed is None else bisect_left(self.times, closed) - 1
        return Range(max(bisect_left(self.times, opened), 1), last)

    def creation(self, address: str) -> int:
        """Return the first block with code at an address."""
        return bisect_left(range(self.head + 1), True, key=lambda number: self.is_there(address, number))

    def is_there(self, address: str, block: int) -> bool:
        """Return whether an address has code at the end of a block."""
        return bool(self.world.node.rpc("eth_getCode", [address, hex(block)]) != "0x")

    def supply(self, token: str, block: int) -> int:
        """Return the total supply at the end of a block in base units; zero before the contract's creation."""
        return self.world.total_supply(token, block) if self.is_there(token, block) else 0

    def balances(self, asset: str, holders: Sequence[str], block: int) -> dict[str, int]:
        """Return the holders' balances of an asset at the end of a block in base units."""
        missing = [holder for holder in holders if (asset, holder, block) not in self._balances]
        if asset == NATIVE:
            found = [self.world.native_balance(holder, block) for holder in missing]
        elif not self.is_there(asset, block):
            found = [0] * len(missing)
        else:
            found = self.world.balances_of(asset, missing, block)
        self._balances.update({(asset, holder, block): n for holder, n in zip(missing, found, strict=True)})
        return {holder: self._balances[asset, holder, block] for holder in holders}

    def decimals(self, asset: str) -> int:
        """Return the decimals of an asset's contract."""
        if asset not in self._decimals:
            answer = self.world.node.rpc("eth_call", [{"to": asset, "data": "0x313ce567"}, "latest"])
            self._decimals[asset] = int(answer, 16)
        return self._decimals[asset] or 0


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Return the union of ranges as maximal ranges, in order; skip empty ones."""
    joined: list[Range] = []
    for first, last in sorted(part for part in ranges if part.first <= part.last):
        if joined and first <= joined[-1].last + 1:
            joined[-1] = Range(joined[-1].first, max(joined[-1].last, last))
        else:
            joined.append(Range(first, last))
    return joined


def _holds(ranges: Sequence[Range], block: int) -> bool:
    return any(first <= block <= last for first, last in ranges)


class _Check:
    """The comparison of one subject."""

    def __init__(self, chain: Chain, subject: Subject, expected: Expectation, finding: Finding) -> None:
        self.chain = chain
        self.subject = subject
        self.expected = expected
        self.finding = finding
        self.client = subject.tenant.client
        self.operations = {request.path: self.client.get(request.path) for request in subject.requests}
        self.collected = self._check_coverage()
        rows = [row for page in self.client.pages(f"{subject.path}/activities", limit=_PAGE) for row in page["data"]]
        self.movements = [row for row in rows if row["type"] not in _MADE_UP]
        self.made_up = [row for row in rows if row["type"] in _MADE_UP]

    def say(self, text: str) -> str:
        return f"{self.subject.label}: {text}"

    # Coverage

    def _requested(self, request: HistoryRequest) -> Range:
        first, last = (
            int(text.removeprefix("block:")) if text.startswith("block:") else None
            for text in (request.start, request.end)
        )
        if first is None:
            first = self.chain.creation(self.subject.address)
        return Range(max(first, 1), self._operation_end(request) if last is None else last)

    def _operation_end(self, request: HistoryRequest) -> int:
        """Return the block to which `now` was resolved."""
        return int(self.operations[request.path]["toBlock"])

    def _check_coverage(self) -> list[Range]:
        """Compare the collected ranges with the requested ones; a request that ended early may have left any part."""
        answer = self.client.get(f"{self.subject.path}/coverage")
        collected = [Range(row["fromBlock"], row["toBlock"]) for row in answer["collected"]]
        windows = [self.chain.span(span.opened, span.closed) for span in self.subject.spans]
        done = {path: operation["status"] == "Succeeded" for path, operation in self.operations.items()}
        requested = {request.path: self._requested(request) for request in self.subject.requests}
        must = merged([*windows, *(blocks for path, blocks in requested.items() if done[path])])
        may = merged([*windows, *requested.values()])
        self.is_done = all(done.values())
        if self.is_done:
            self.finding.count(self.finding.differs(self.say("collected"), collected, must))
        else:
            self.finding.require(
                merged([*must, *collected]) == collected and merged([*may, *collected]) == may,
                self.say(f"collected {collected}, which is not between {must} and {may}"),
            )
        for path, operation in self.operations.items():
            progress = operation["progress"]
            self.finding.require(
                not done[path] or progress["done"] == progress["total"], self.say(f"{path} is done at {progress}")
            )
        return collected

    def moments(self) -> Iterator[tuple[Range, int]]:
        """Yield (range, block) for each compared moment, in order."""
        for covered in self.collected:
            length = covered.last - covered.first
            steps = {covered.first + length * step // (_BETWEEN + 1) for step in range(_BETWEEN + 2)}
            for block in sorted(steps):
                yield covered, block

    def as_of(self, block: int) -> dict[str, str]:
        """Return the query parameters of a moment; the newest one needs none."""
        return {} if block == self.collected[-1].last else {"asOf": f"block:{block}"}

    def check_moment(self, answer: Row, block: int) -> None:
        """Require the answer's moment to be the requested one."""
        shown = answer["asOf"]["blockNumber"]
        self.finding.require(shown == block, self.say(f"asked for block {block}, and answered as of {shown}"))

    def known(self, row: Row, asset: str, quantity: int, true: int, is_explained: bool, *more: str | None) -> None:
        """Count one balance as equal to the node's, explained, or wrong."""
        if quantity == true:
            shown = decimal_text(quantity, self.chain.decimals(asset))
            self.finding.count(self.finding.differs(self.say(f"{asset} quantity"), row["quantity"], shown), *more)
        elif is_explained:
            self.finding.explain()
        else:
            self.finding.count(self.say(f"{row} is shown, and the node says {true}"), *more)

    def check_reconciliation(self, row: Row, block: int, is_adjusted: bool, behaviour: str | None) -> None:
        """Require the reconciliation and checked block of a row that was compared with the chain.

        After a request that ended early, rows may still be unchecked. For tokens that are not known to be Standard, a
        reading only confirms its own block.
        """
        is_confirmable = behaviour == "Standard" or row["checkedBlockNumber"] == block
        if row["reconciliation"] == "Unchecked" and not (self.is_done and is_confirmable):
            return
        expected = "Adjusted" if is_adjusted else "Reconciled"
        self.finding.require(
            row["reconciliation"] == expected, self.say(f"{row} should be {expected} at block {block}")
        )
        checked = row["checkedBlockNumber"]
        self.finding.require(
            checked is not None and checked <= block, self.say(f"{row} was checked at {checked}, after block {block}")
        )

    def check_adjusted(self, adjusted: set[str]) -> None:
        """Require adjustments exactly where the script made them necessary."""
        self.finding.require(
            self.expected.adjusted <= adjusted,
            self.say(f"no adjustment of {sorted(self.expected.adjusted - adjusted)}"),
        )
        self.finding.require(
            self.expected.is_lying or adjusted <= self.expected.adjusted,
            self.say(f"needless adjustments of {sorted(adjusted - self.expected.adjusted)}"),
        )

    def compare(self, what: str, shown: Counter[Any], true: Counter[Any]) -> None:
        """Count rows that must be the same on both sides."""
        self.finding.total += (shown | true).total()
        self.finding.agreed += (shown & true).total()
        for name, rows in (("missing", true - shown), ("not on the node", shown - true)):
            self.finding.require(not rows, self.say(f"{rows.total()} {what} {name}, such as {next(iter(rows), None)}"))


class _TokenCheck(_Check):
    def run(self, token: Token) -> None:
        seen = [m for m in self.chain.movements if m.token == token.address and _holds(self.collected, m.block)]
        self._check_movements(seen)
        adjustments: dict[str, list[int]] = defaultdict(list)
        for row in self.made_up:
            adjustments[(row["toWallet"] or row["fromWallet"]).lower()].append(row["blockNumber"])
        self.check_adjusted(set(adjustments))
        tables: dict[int, dict[str, int]] = {}
        for covered, block in self.moments():
            tables[block] = self._check_table(token, covered, block, seen, adjustments)
        self._check_sums(tables)
        detail = self.client.get(self.subject.path)
        if self.expected.behaviour is not None:
            self.finding.count(
                self.finding.differs(self.say("behaviour"), detail["behaviour"], self.expected.behaviour)
            )

    def _check_movements(self, seen: Sequence[Movement]) -> None:
        shown = Counter(
            (
                row["blockNumber"],
                row["logIndex"],
                row["transactionHash"],
                row["type"],
                (row["fromWallet"] or ZERO_ADDRESS).lower(),
                (row["toWallet"] or ZERO_ADDRESS).lower(),
                int(row["amountRaw"]),
            )
            for row in self.movements
        )
        true = Counter(
            (
                m.block,
                m.log_index,
                m.transaction,
                "Mint" if m.sender == ZERO_ADDRESS else "Burn" if m.receiver == ZERO_ADDRESS else "Transfer",
                m.sender,
                m.receiver,
                m.amount,
            )
            for m in seen
        )
        self.compare("movements", shown, true)

    def _check_table(
        self, token: Token, covered: Range, block: int, seen: Sequence[Movement], adjustments: dict[str, list[int]]
    ) -> dict[str, int]:
        """Check a cap table at a moment and return its quantities by holder."""
        pages = list(self.client.pages(f"{self.subject.path}/cap-table", limit=_PAGE, **self.as_of(block)))
        for page in pages:
            self.check_moment(page, block)
        head, rows = pages[0], [row for page in pages for row in page["data"]]
        is_newest = block == self.collected[-1].last

        def is_explained(holder: str) -> bool:
            return any(block < at <= covered.last for at in adjustments.get(holder, ()))

        may_know = {party for m in seen for party in (m.sender, m.receiver)} - {ZERO_ADDRESS}
        must_know = {p for m in seen if m.block <= covered.last for p in (m.sender, m.receiver)} - {ZERO_ADDRESS}
        quantities = {row["wallet"].lower(): int(row["quantityRaw"]) for row in rows}
        true = self.chain.balances(token.address, sorted(may_know | set(quantities)), block)
        supply = None if head["totalSupplyRaw"] is None else int(head["totalSupplyRaw"])
        true_supply = self.chain.supply(token.address, block)
        what = f"at block {block}"
        if supply != true_supply and any(is_explained(holder) for holder in adjustments):
            self.finding.explain()
        else:
            self.finding.count(self.finding.differs(self.say(f"totalSupply {what}"), supply, true_supply))
        behaviour = behaviour_of(self.subject, token.address)
        for rank, row in enumerate(rows, start=1):
            holder = row["wallet"].lower()
            shown = int(row["quantityRaw"])
            self.known(
                row,
                token.address,
                shown,
                true[holder],
                is_explained(holder),
                self.finding.differs(self.say(f"{holder} rank {what}"), row["rank"], rank),
                self.finding.differs(self.say("address"), row["wallet"], Web3.to_checksum_address(holder)),
                self.finding.differs(
                    self.say(f"{holder} percentage {what}"),
                    row["percentage"],
                    percentage_text(shown, supply) if supply else None,
                ),
                None if shown else self.say(f"{holder} holds nothing and is listed {what}"),
                None if holder in may_know else self.say(f"{holder} is listed {what}, and was never seen in the view"),
            )
            if is_newest:
                is_adjusted = any(at <= block for at in adjustments.get(holder, ()))
                self.check_reconciliation(row, block, is_adjusted, behaviour)
        for holder in sorted(must_know - set(quantities)):
            if true[holder] and is_explained(holder):
                self.finding.explain()
            elif true[holder]:
                self.finding.count(self.say(f"{holder} holds {true[holder]} {what}, and is not listed"))
        order = [(-quantity, holder) for holder, quantity in quantities.items()]
        self.finding.require(len(quantities) == len(rows), self.say(f"a holder is listed twice {what}"))
        self.finding.require(order == sorted(order), self.say(f"rows are not in falling order {what}"))
        rest = None if supply is None else str(supply - sum(quantities.values()))
        for name, value, expected in (
            ("unattributed", head["unattributed"]["quantityRaw"], rest),
            ("holderCount", head["holderCount"], len(rows)),
        ):
            self.finding.require(value == expected, self.say(f"{name} {what} is {value}, not {expected}"))
        return quantities

    def _check_sums(self, tables: dict[int, dict[str, int]]) -> None:
        """Require each holder's activities between two moments of a range to sum up to the change of its balance."""
        for covered in self.collected:
            for earlier, later in pairwise(block for block in tables if _holds([covered], block)):
                change: dict[str, int] = defaultdict(int)
                for row in (*self.movements, *self.made_up):
                    if earlier < row["blockNumber"] <= later:
                        change[(row["toWallet"] or ZERO_ADDRESS).lower()] += int(row["amountRaw"])
                        change[(row["fromWallet"] or ZERO_ADDRESS).lower()] -= int(row["amountRaw"])
                for holder in {*tables[earlier], *tables[later], *change} - {ZERO_ADDRESS}:
                    difference = tables[later].get(holder, 0) - tables[earlier].get(holder, 0)
                    self.finding.require(
                        change[holder] == difference,
                        self.say(f"{holder} has {difference} more at {later} than at {earlier} by {change[holder]}"),
                    )


class _WalletCheck(_Check):
    def run(self) -> None:
        wallet = self.subject.address
        seen = [m for m in self.chain.movements if wallet in (m.sender, m.receiver) and _holds(self.collected, m.block)]
        self.full = self._full_blocks()
        self._check_movements(wallet, seen)
        self._check_native(wallet)
        adjustments: dict[str, list[int]] = defaultdict(list)
        for row in self.made_up:
            adjustments[row["token"]["ledgerId"].lower()].append(row["blockNumber"])
        self.check_adjusted({asset for asset in adjustments if asset != NATIVE})
        held: dict[int, dict[str, int]] = {}
        for covered, block in self.moments():
            held[block] = self._check_positions(wallet, covered, block, seen, adjustments)
        self._check_sums(held)

    def _full_blocks(self) -> list[Range]:
        """Return the ranges with collected transactions, as opposed to balances alone."""
        return merged(
            [
                *(self.chain.span(span.opened, span.closed) for span in self.subject.spans),
                *(
                    self._requested(request)
                    for request in self.subject.requests
                    if self.operations[request.path]["native"] == "full"
                    and self.operations[request.path]["status"] == "Succeeded"
                ),
            ]
        )

    def _check_movements(self, wallet: str, seen: Sequence[Movement]) -> None:
        shown = Counter(
            (
                row["blockNumber"],
                row["transactionHash"],
                row["token"]["ledgerId"].lower(),
                row["type"],
                int(row["amountRaw"]),
            )
            for row in self.movements
            if row["token"]["ledgerId"] != NATIVE
        )
        true = Counter(
            (m.block, m.transaction, m.token, wallet_kind(wallet, m.sender, m.receiver), m.amount) for m in seen
        )
        self.compare("token movements", shown, true)

    def _check_native(self, wallet: str) -> None:
        """Compare payments, fees and failures with the transactions of all blocks collected in full."""
        shown = Counter(
            (row["blockNumber"], row["transactionHash"], row["type"], int(row["amountRaw"]), row["status"] == "Failed")
            for row in self.movements
            if row["token"]["ledgerId"] == NATIVE
        )
        true: Counter[Any] = Counter()
        for number in (n for first, last in self.full for n in range(first, last + 1)):
            for item in self.chain.transactions[number]:
                if wallet not in (item["from"], item["to"]):
                    continue
                receipt = self.chain.receipt(item["hash"])
                value, is_failed = int(item["value"], 16), receipt["status"] == "0x0"
                fee = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
                if item["from"] == wallet and fee:
                    true[number, item["hash"], "Fee", fee, False] += 1
                if (value and not is_failed) or (is_failed and item["from"] == wallet):
                    kind = wallet_kind(wallet, item["from"], item["to"] or "")
                    true[number, item["hash"], kind, value, is_failed] += 1
        self.compare("transactions", shown, true)
        if self.expected.internals is not None:
            traced = Counter(
                (
                    row["blockNumber"],
                    row["transactionHash"],
                    row["direction"],
                    int(row["amountRaw"]),
                    row["counterparty"].lower(),
                )
                for row in self.made_up
                if row["type"] == "Internal" and row["transactionHash"] is not None
            )
            self.compare("internal transfers", traced, Counter(self.expected.internals))
        for first, last in self.collected:
            moved = sum(
                balance_effect(row)
                for row in (*self.movements, *self.made_up)
                if row["token"]["ledgerId"] == NATIVE and first <= row["blockNumber"] <= last
            )
            change = self.chain.world.native_balance(wallet, last) - self.chain.world.native_balance(wallet, first - 1)
            self.finding.count(
                self.finding.differs(self.say(f"native activities of blocks {first} to {last} together"), moved, change)
            )

    def _check_positions(
        self, wallet: str, covered: Range, block: int, seen: Sequence[Movement], adjustments: dict[str, list[int]]
    ) -> dict[str, int]:
        """Check the balances at a moment and return their quantities by asset."""
        answer = self.client.get(f"{self.subject.path}/balances", **self.as_of(block))
        self.check_moment(answer, block)
        rows = {row["token"]["ledgerId"].lower(): row for row in answer["current"]}
        configured = {subject.address for subject in self.subject.tenant.subjects if subject.token is not None}
        may_know = {NATIVE, *self.subject.configured_before, *configured, *(m.token for m in seen)}
        must_know = {NATIVE, *(self.subject.configured_before & configured)}
        must_know |= {m.token for m in seen if m.block <= covered.last}
        for asset in sorted(may_know | set(rows)):
            true = self.chain.balances(asset, [wallet], block)[wallet]
            is_explained = any(block < at <= covered.last for at in adjustments.get(asset, ()))
            row = rows.get(asset)
            if row is None:
                if true and is_explained:
                    self.finding.explain()
                elif true and asset in must_know:
                    self.finding.count(self.say(f"{true} of {asset} at block {block} is not listed"))
                continue
            shown = int(row["quantityRaw"])
            self.known(
                row,
                asset,
                shown,
                true,
                is_explained,
                None if shown else self.say(f"{asset} is listed at block {block} and is nothing"),
                None if asset in may_know else self.say(f"{asset} is listed and was never seen in the view"),
            )
            if block == self.collected[-1].last:
                is_adjusted = any(at <= block for at in self._corrections(asset))
                self.check_reconciliation(row, block, is_adjusted, behaviour_of(self.subject, asset))
        return {asset: int(row["quantityRaw"]) for asset, row in rows.items()}

    def _corrections(self, asset: str) -> list[int]:
        """Return the blocks of adjustments; traced payments are not adjustments."""
        return [
            row["blockNumber"]
            for row in self.made_up
            if row["token"]["ledgerId"].lower() == asset and row["transactionHash"] is None
        ]

    def _check_sums(self, held: dict[int, dict[str, int]]) -> None:
        """Require each asset's activities between two moments of a range to sum up to the change of its balance."""
        for covered in self.collected:
            for earlier, later in pairwise(block for block in held if _holds([covered], block)):
                change: dict[str, int] = defaultdict(int)
                for row in (*self.movements, *self.made_up):
                    if earlier < row["blockNumber"] <= later:
                        change[row["token"]["ledgerId"].lower()] += balance_effect(row)
                for asset in {*held[earlier], *held[later], *change}:
                    difference = held[later].get(asset, 0) - held[earlier].get(asset, 0)
                    self.finding.require(
                        change[asset] == difference,
                        self.say(f"{asset} is {difference} more at {later} than at {earlier} by {change[asset]}"),
                    )


def check_subject(chain: Chain, subject: Subject, expected: Expectation, finding: Finding) -> None:
    """Compare all answers of the API about a token or wallet, and count them."""
    try:
        if subject.token is not None:
            _TokenCheck(chain, subject, expected, finding).run(subject.token)
        else:
            _WalletCheck(chain, subject, expected, finding).run()
    except ApiError as error:
        finding.count(f"{subject.label}: {error}")


def behaviour_of(subject: Subject, asset: str) -> str | None:
    """Return the behaviour that the API shows for an asset; None if the tenant has no such token."""
    if asset == NATIVE:
        return "Standard"
    own = [one for one in subject.tenant.subjects if one.token is not None and one.address.lower() == asset.lower()]
    return subject.tenant.client.get(own[0].path)["behaviour"] if own else None


def end_state(subjects: Iterable[Subject]) -> dict[str, Any]:
    """Return the API's answers about subjects, without parts that depend on ids, versions or the moments of cycles.

    Adjustments are summed up because their blocks depend on when the change was seen. Reconciliation is left out for
    balances and supplies that may change without an event: it depends on when they were read. Subjects with a request
    that ended early are left out: their collected ranges depend on the moments of cycles.
    """
    state: dict[str, Any] = {}
    for subject in subjects:
        client = subject.tenant.client
        statuses = [client.get(request.path)["status"] for request in subject.requests]
        state[f"{subject.label}, requests"] = statuses
        if any(status != "Succeeded" for status in statuses):
            continue
        collected = client.get(f"{subject.path}/coverage")["collected"]
        state[f"{subject.label}, collected"] = [(row["fromBlock"], row["toBlock"]) for row in collected]
        rows = [row for page in client.pages(f"{subject.path}/activities", limit=_PAGE) for row in page["data"]]
        token = subject.token
        state[f"{subject.label}, activities"] = sorted(
            repr([(row.get("token") or {}).get("ledgerId"), *(row.get(name) for name in _TOLD)])
            for row in rows
            if row["transactionHash"] is not None
        )
        sums: Counter[str] = Counter()
        for row in rows:
            if row["transactionHash"] is not None:
                continue
            if token is None:
                sums[row["token"]["ledgerId"]] += balance_effect(row)
            else:
                sign = 1 if row["toWallet"] else -1
                sums[row["toWallet"] or row["fromWallet"]] += sign * int(row["amountRaw"])
        state[f"{subject.label}, adjustments"] = dict(sorted(sums.items()))
        if token is None:
            balances = client.get(f"{subject.path}/balances")["current"]
            checks = {
                row["token"]["ledgerId"]: row["reconciliation"]
                for row in balances
                if behaviour_of(subject, row["token"]["ledgerId"]) == "Standard"
            }
            state[f"{subject.label}, balances"] = [
                (asset, row["quantityRaw"], checks.get(asset))
                for row in balances
                for asset in [row["token"]["ledgerId"]]
            ]
        else:
            pages = list(client.pages(f"{subject.path}/cap-table", limit=_PAGE))
            behaviour = client.get(subject.path)["behaviour"]
            rest = pages[0]["unattributed"]
            state[f"{subject.label}, cap table"] = [
                [pages[0]["totalSupplyRaw"], pages[0]["holderCount"], rest["quantityRaw"], rest["percentage"]],
                rest["status"] if behaviour == "Standard" else None,
                *(
                    (row["wallet"], row["quantityRaw"], row["reconciliation"] if behaviour == "Standard" else None)
                    for page in pages
                    for row in page["data"]
                ),
            ]
            state[f"{subject.label}, behaviour"] = behaviour
    return state
