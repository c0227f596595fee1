"""What the marts must say about a made-up network, worked out in plain Python from its raw rows by the definitions."""

from collections import defaultdict
from fractions import Fraction
from typing import NamedTuple

from tests.integration.transform_world import NATIVE, ZERO, Subject, Window, World

Pair = tuple[str, str]


class Point(NamedTuple):
    """A balance after a block with a movement or a reading."""

    block: int
    balance: int
    is_observed: bool
    adjustment: int


class Expected(NamedTuple):
    """The marts' rows, reduced to what identifies and measures them."""

    balance_changes: set[tuple[int, int, str, str, int, int, bool]]
    cap_tables: set[tuple[int, int, str, int, str | None, str, int | None]]
    summaries: dict[int, tuple[object, ...]]
    wallet_balances: set[tuple[int, str, str | None, int, str, int | None]]
    token_activities: set[tuple[int, str, str, int, int, str | None, str | None, int, str | None]]
    wallet_activities: set[tuple[int, str, str | None, str, int, int, int, str | None, str, str | None, int]]
    as_of: dict[int, int | None]


def amount_text(raw: int, decimals: int) -> str:
    """Canonical decimal text of raw / 10^decimals."""
    sign, digits = "-" if raw < 0 else "", str(abs(raw)).rjust(decimals + 1, "0")
    whole, fraction = digits[: len(digits) - decimals], digits[len(digits) - decimals :].rstrip("0")
    return sign + whole + ("." + fraction if fraction else "")


def rounded_text(value: Fraction) -> str:
    """Canonical decimal text with at most 12 decimals, half to even."""
    return amount_text(round(value * 10**12), 12)


class Oracle:
    """The definitions, over the rows of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.covered = {
            (kind, where): {
                block for row in world.coverage if row[:2] == (kind, where) for block in range(row.first, row.last + 1)
            }
            for kind, where in {row[:2] for row in world.coverage}
        }

    def _visible(self, subject: Subject, window: Window) -> set[int]:
        last = self.world.head if window.last is None else window.last
        return self.covered.get((subject.kind, subject.address), set()) & set(range(window.first, last + 1))

    def _covered_to(self, subject: Subject, window: Window) -> int | None:
        visible, block = self._visible(subject, window), window.first
        while block in visible:
            block += 1
        return block - 1 if block > window.first else None

    def _windows(self, subject: Subject) -> list[Window]:
        return sorted(
            (row for row in self.world.windows.values() if row.subject == subject.key), key=lambda row: row.first
        )

    def _is_amount(self, token: str) -> bool:
        return self.world.metadata.get(token, ("Unknown", None, None))[0] != "NotFungible"

    def _movements(self, subject: Subject) -> list[tuple[int, Pair, int]]:
        moves: list[tuple[int, Pair, int]] = []
        for row in self.world.transfers:
            if not self._is_amount(row.token):
                continue
            for holder, amount in ((row.sender, -row.amount), (row.recipient, row.amount)):
                concerned = row.token == subject.address if subject.kind == "token" else holder == subject.address
                if holder != ZERO and concerned:
                    moves.append((row.block, (row.token, holder), amount))
        if subject.kind == "wallet":
            me = subject.address
            for transaction in self.world.transactions:
                amount = 0
                if transaction.sender == me:
                    amount -= (transaction.fee or 0) + (transaction.value if transaction.is_success else 0)
                if transaction.is_success and me in (transaction.recipient, transaction.created):
                    amount += transaction.value
                if transaction.sender == me or (
                    transaction.is_success and me in (transaction.recipient, transaction.created)
                ):
                    moves.append((transaction.block, (NATIVE, me), amount))
        return moves

    def _listed(self, subject: Subject) -> dict[str, str | None]:
        listed: dict[str, str | None] = dict.fromkeys([NATIVE, *self.world.common])
        own = [row for row in self.world.subjects.values() if row.kind == "token" and row.tenant == subject.tenant]
        for row in sorted(own, key=lambda row: (row.ledger == subject.ledger, -row.key)):
            listed[row.address] = row.id
        return listed

    def _points(self, subject: Subject) -> dict[Window, dict[Pair, list[Point]]]:
        moves, known = self._movements(subject), set[Pair]()
        listed = self._listed(subject) if subject.kind == "wallet" else {}
        result: dict[Window, dict[Pair, list[Point]]] = {}
        for window in self._windows(subject):
            last = self._covered_to(subject, window)
            if last is None:
                continue
            inside = [move for move in moves if window.first <= move[0] <= last]
            known |= {pair for _, pair, _ in inside}
            readings: dict[Pair, dict[int, int]] = defaultdict(dict)
            for row in self.world.readings:
                pair = (row.token, row.holder)
                concerned = row.token == subject.address if subject.kind == "token" else row.holder == subject.address
                allowed = pair in known or row.token in listed
                inside_view = window.first - 1 <= row.block <= last
                if concerned and allowed and inside_view and row.quantity is not None and self._is_amount(row.token):
                    readings[pair][row.block] = row.quantity
            result[window] = {}
            for pair in {pair for _, pair, _ in inside} | set(readings):
                steps = [(block, amount) for block, moved, amount in inside if moved == pair]
                offsets = {
                    block: quantity - sum(amount for when, amount in steps if when <= block)
                    for block, quantity in readings[pair].items()
                }
                points, previous = [], None
                for block in sorted({block for block, _ in steps} | set(offsets)):
                    earlier = [when for when in offsets if when <= block]
                    later = [when for when in offsets if when > block]
                    if not earlier and not later:
                        continue
                    offset = offsets[max(earlier)] if earlier else offsets[min(later)]
                    adjustment = 0
                    if block in offsets:
                        adjustment = 0 if previous is None else offsets[block] - previous
                        previous = offsets[block]
                    moved_so_far = sum(amount for when, amount in steps if when <= block)
                    points.append(Point(block, moved_so_far + offset, block in offsets, adjustment))
                if points:
                    result[window][pair] = points
        return result

    def _moved_block(self, subject: Subject, window: Window, pair: Pair) -> int:
        last = self._covered_to(subject, window)
        assert last is not None
        blocks = [
            block for block, moved, _ in self._movements(subject) if moved == pair and window.first <= block <= last
        ]
        return max(blocks, default=0)

    def _supply(self, subject: Subject, window: Window, last: int) -> int | None:
        if not self._is_amount(subject.address):
            return None
        readings = [
            row for row in self.world.supplies if row.token == subject.address and window.first - 1 <= row.block <= last
        ]
        if not readings:
            return None
        newest = max(readings, key=lambda row: row.block)
        since = [
            row for row in self.world.transfers if row.token == subject.address and newest.block < row.block <= last
        ]
        minted = sum(row.amount for row in since if row.sender == ZERO)
        return newest.quantity + minted - sum(row.amount for row in since if row.recipient == ZERO)

    def _status(self, block: int) -> str:
        return "Finalized" if self.world.final is not None and block <= self.world.final else "Confirmed"

    def expected(self) -> Expected:
        """All marts at once."""
        result = Expected(set(), set(), {}, set(), set(), set(), {})
        for subject in self.world.subjects.values():
            points = self._points(subject)
            windows = [(window, self._covered_to(subject, window)) for window in self._windows(subject)]
            current = [(window, last) for window, last in windows if last is not None]
            result.as_of[subject.key] = current[-1][1] if current else None
            for window, pairs in points.items():
                for (token, holder), rows in pairs.items():
                    result.balance_changes.update(
                        (subject.key, window.key, token, holder, row.block, row.balance, row.is_observed)
                        for row in rows
                    )
            adjusted = {
                pair for pairs in points.values() for pair, rows in pairs.items() if any(row.adjustment for row in rows)
            }
            positions = []
            if current:
                window, _ = current[-1]
                for pair, rows in points.get(window, {}).items():
                    checked = max((row.block for row in rows if row.is_observed), default=None)
                    moved = self._moved_block(subject, window, pair)
                    check = (
                        "Adjusted"
                        if pair in adjusted
                        else ("Reconciled" if checked is not None and checked >= moved else "Unchecked")
                    )
                    if rows[-1].balance:
                        positions.append((pair, rows[-1].balance, check, checked))
            if subject.kind == "token":
                self._cap_table(result, subject, current, positions)
                self._token_activities(result, subject, points)
            else:
                listed = self._listed(subject)
                result.wallet_balances.update(
                    (subject.key, token, listed.get(token), quantity, check, checked)
                    for (token, _), quantity, check, checked in positions
                )
                self._wallet_activities(result, subject, points)
        return result

    def _cap_table(
        self,
        result: Expected,
        subject: Subject,
        current: list[tuple[Window, int]],
        positions: list[tuple[Pair, int, str, int | None]],
    ) -> None:
        supply = self._supply(subject, *current[-1]) if current else None
        ranked = sorted(positions, key=lambda row: (-row[1], row[0][1]))
        for rank, ((_, holder), quantity, check, checked) in enumerate(ranked, 1):
            share = rounded_text(Fraction(100 * quantity, supply)) if supply else None
            result.cap_tables.add((subject.key, rank, holder, quantity, share, check, checked))
        quantities = [quantity for _, quantity, _, _ in ranked]
        held, count = sum(quantities), len(quantities)
        is_counted = bool(current) and self._is_amount(subject.address)
        figures: tuple[object, ...] = (None,) * 5
        if supply:
            gini = None
            if held:
                weighted = sum(position * quantity for position, quantity in enumerate(reversed(quantities), 1))
                gini = rounded_text(Fraction(2 * weighted - (count + 1) * held, count * held))
            figures = (
                rounded_text(Fraction(100 * (supply - held), supply)),
                rounded_text(Fraction(100 * sum(quantities[:10]), supply)),
                rounded_text(Fraction(10**4 * sum(quantity**2 for quantity in quantities), supply**2)),
                gini,
                next((rank for rank in range(1, count + 1) if 2 * sum(quantities[:rank]) > supply), None),
            )
        result.summaries[subject.key] = (
            supply,
            "Unknown" if supply is None else "Observed" if supply else "ZeroSupply",
            count if is_counted else None,
            None if supply is None else supply - held,
            *figures,
        )

    def _token_activities(
        self, result: Expected, subject: Subject, points: dict[Window, dict[Pair, list[Point]]]
    ) -> None:
        if not self._is_amount(subject.address):
            return
        decimals = self.world.metadata.get(subject.address, ("Unknown", None, None))[2]
        visible = {block for window in self._windows(subject) for block in self._visible(subject, window)}
        for row in self.world.transfers:
            if row.token != subject.address or row.block not in visible:
                continue
            kind = "Mint" if row.sender == ZERO else "Burn" if row.recipient == ZERO else "Transfer"
            if row.sender == row.recipient:
                kind = "Transfer"
            amount = None if decimals is None else amount_text(row.amount, decimals)
            result.token_activities.add(
                (
                    subject.key,
                    kind,
                    self._status(row.block),
                    row.block,
                    row.log,
                    row.sender,
                    row.recipient,
                    row.amount,
                    amount,
                )
            )
        for pairs in points.values():
            for (_, holder), rows in pairs.items():
                for point in rows:
                    if point.adjustment:
                        size = abs(point.adjustment)
                        result.token_activities.add(
                            (
                                subject.key,
                                "Adjustment",
                                self._status(point.block),
                                point.block,
                                -1,
                                holder if point.adjustment < 0 else None,
                                holder if point.adjustment > 0 else None,
                                size,
                                None if decimals is None else amount_text(size, decimals),
                            )
                        )

    def _wallet_activities(
        self, result: Expected, subject: Subject, points: dict[Window, dict[Pair, list[Point]]]
    ) -> None:
        me, listed, out = subject.address, self._listed(subject), result.wallet_activities
        visible = {block for window in self._windows(subject) for block in self._visible(subject, window)}
        for row in self.world.transfers:
            if row.block not in visible or me not in (row.sender, row.recipient) or not self._is_amount(row.token):
                continue
            if row.sender == row.recipient:
                kind, direction, other = "Self", None, me
            elif row.sender == me:
                kind, direction, other = ("Burn" if row.recipient == ZERO else "TransferOut"), "Out", row.recipient
            else:
                kind, direction, other = ("Mint" if row.sender == ZERO else "TransferIn"), "In", row.sender
            out.add(
                (
                    subject.key,
                    kind,
                    direction,
                    self._status(row.block),
                    row.block,
                    row.position,
                    row.log,
                    other,
                    row.token,
                    listed.get(row.token),
                    row.amount,
                )
            )
        for transaction in self.world.transactions:
            block, status = transaction.block, self._status(transaction.block)
            target = transaction.recipient or transaction.created
            if block not in visible:
                continue
            if transaction.sender == me and transaction.fee is not None:
                out.add(
                    (
                        subject.key,
                        "Fee",
                        "Out",
                        status,
                        block,
                        transaction.position,
                        -1,
                        None,
                        NATIVE,
                        listed[NATIVE],
                        transaction.fee,
                    )
                )
            if not transaction.value or transaction.is_success is None:
                continue
            if transaction.sender == me:
                is_self = target == me
                out.add(
                    (
                        subject.key,
                        "Self" if is_self else "TransferOut",
                        None if is_self else "Out",
                        status if transaction.is_success else "Failed",
                        block,
                        transaction.position,
                        -1,
                        target,
                        NATIVE,
                        listed[NATIVE],
                        transaction.value,
                    )
                )
            elif target == me and transaction.is_success:
                out.add(
                    (
                        subject.key,
                        "TransferIn",
                        "In",
                        status,
                        block,
                        transaction.position,
                        -1,
                        transaction.sender,
                        NATIVE,
                        listed[NATIVE],
                        transaction.value,
                    )
                )
        for pairs in points.values():
            for (token, _), rows in pairs.items():
                for point in rows:
                    if point.adjustment:
                        out.add(
                            (
                                subject.key,
                                "Internal" if token == NATIVE else "Adjustment",
                                "Out" if point.adjustment < 0 else "In",
                                self._status(point.block),
                                point.block,
                                -1,
                                -1,
                                None,
                                token,
                                listed.get(token),
                                abs(point.adjustment),
                            )
                        )
