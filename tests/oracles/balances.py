"""Expected marts of a made-up network, computed in plain Python from its raw rows by the definitions."""

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from tests.worlds.ledger import NATIVE, ZERO, Subject, World

Pair = tuple[str, str]
Range = tuple[int, int]


class Point(NamedTuple):
    """A balance after a block with a movement or a reading; `adjustment` is its part not explained by movements."""

    block: int
    movement: int
    balance: int
    is_moved: bool
    is_observed: bool
    adjustment: int
    is_resting: bool
    is_located: bool
    opened_by: str


Points = dict[Range, dict[Pair, list[Point]]]


class Shown(NamedTuple):
    """A balance at a block, with its reconciliation."""

    balance: int
    reconciliation: str
    checked_block: int | None


class Expected(NamedTuple):
    """The marts' rows, reduced to their keys and measures."""

    balance_changes: set[tuple[int, int, str, str, int, int, int, int, bool, bool, bool, bool, bool, str]]
    supply_changes: set[tuple[int, int, int, int, bool]]
    cap_tables: set[tuple[int, int, str, int, str | None, str, int | None, str]]
    summaries: dict[int, tuple[object, ...]]
    wallet_balances: set[tuple[int, str, str | None, int, str, int | None, str]]
    token_activities: set[tuple[int, str, str, int, int, str | None, str | None, int, str | None, bool | None]]
    wallet_activities: set[
        tuple[int, str, str | None, str, int, int, int, int | None, str | None, str | None, str, str | None, int | None]
    ]
    coverage: set[tuple[int, int, int | None, bool, str | None, str | None]]
    as_of: dict[int, tuple[int | None, int | None]]
    behaviours: dict[int, str | None]
    holdings_complete: dict[int, bool]


def amount_text(raw: int, decimals: int) -> str:
    """Canonical decimal text of raw / 10^decimals."""
    sign, digits = "-" if raw < 0 else "", str(abs(raw)).rjust(decimals + 1, "0")
    whole, fraction = digits[: len(digits) - decimals], digits[len(digits) - decimals :].rstrip("0")
    return sign + whole + ("." + fraction if fraction else "")


def rounded_text(value: Fraction) -> str:
    """Canonical decimal text with at most 12 decimals, half to even."""
    return amount_text(round(value * 10**12), 12)


def concentration(quantities: list[int], supply: int, standing: str) -> tuple[object, ...]:
    """Return top ten, HHI, Gini and Nakamoto with their statuses, computed for both extreme cases of the rest.

    Either one unseen holder has the whole rest, or infinitely many share it; the latter adds nothing to the top ten or
    the squares. Figures that are equal in both cases get the status `standing`.
    """
    rest = supply - sum(quantities)
    cases = [sorted(held, reverse=True) for held in (quantities, [*quantities, *([rest] if rest > 0 else [])])]
    top10, most_top10 = (rounded_text(Fraction(100 * sum(held[:10]), supply)) for held in cases)
    hhi, most_hhi = (
        rounded_text(sum((Fraction(100 * one, supply) ** 2 for one in held), Fraction(0))) for held in cases
    )
    majorities = [
        next((rank for rank in range(1, len(held) + 1) if 2 * sum(held[:rank]) > supply), None) for held in cases
    ]
    differences = sum(abs(one - other) for one in quantities for other in quantities)
    gini = rounded_text(Fraction(differences, 2 * len(quantities) * supply)) if rest == 0 else None
    unknown = "HoldersUnknown"
    is_hhi_known = rest >= 0 and hhi == most_hhi
    is_majority_known = rest >= 0 and majorities[0] is not None and majorities[0] == majorities[1]
    return (
        top10,
        standing if standing == "Unconfirmed" or (rest >= 0 and top10 == most_top10) else "LowerBound",
        *((hhi, standing) if is_hhi_known else (None, unknown)),
        *((gini, standing) if rest == 0 else (None, unknown)),
        *((majorities[0], standing) if is_majority_known else (None, unknown)),
    )


def is_checked(row: Point, rows: list[Point]) -> bool:
    """Return whether a reading checks the balance; the reading from which the opening is derived does not."""
    first = min((one.block for one in rows if one.is_observed), default=None)
    return row.is_observed and not (row.opened_by == "Derived" and row.block == first and not row.adjustment)


def confirming_block(rows: list[Point], block: int, behaviour: str | None) -> int | None:
    """Return the block of the reading that confirms a pair's balance at a block of a covered range.

    The reading must be in the same rest: the blocks from one movement or adjustment to the next. If an adjustment is
    not located, the blocks between its reading and the one before stay unconfirmed: the time of the change is unknown.
    """
    checked = [row.block for row in rows if is_checked(row, rows)]
    if block in checked:
        return block
    if behaviour != "Standard":
        return None
    edges = [row.block for row in rows if row.is_moved or row.adjustment]
    begin = max((edge for edge in edges if edge <= block), default=-1)
    end = min((edge for edge in edges if edge > block), default=block + 10**9)
    resting = [reading for reading in checked if begin <= reading < end]
    following = [row for row in rows if row.is_observed and row.block > block]
    is_open = bool(following) and following[0].adjustment != 0 and not following[0].is_located
    earlier = [] if is_open else [reading for reading in resting if reading < block]
    return max(earlier, default=min((reading for reading in resting if reading > block), default=None))


class Oracle:
    """The definitions, applied to the rows of one world."""

    def __init__(self, world: World) -> None:
        self.world = world

    def _is_amount(self, subject: Subject, token: str) -> bool:
        return self.world.contract(subject.tenant, token)[0] != "NotFungible"

    def _movements(self, subject: Subject) -> list[tuple[int, Pair, int]]:
        moves: list[tuple[int, Pair, int]] = []
        for row in self.world.transfers:
            if not self._is_amount(subject, row.token):
                continue
            for holder, amount in ((row.sender, -row.amount), (row.recipient, row.amount)):
                concerned = row.token == subject.address if subject.kind == "token" else holder == subject.address
                if holder != ZERO and concerned:
                    moves.append((row.block, (row.token, holder), amount))
        if subject.kind == "wallet":
            me, native = subject.address, self.world.visible_native(subject)
            for transaction in self.world.transactions:
                amount = 0
                if transaction.sender == me:
                    amount -= (transaction.fee or 0) + (transaction.value if transaction.is_success else 0)
                is_received = transaction.is_success and me in (transaction.recipient, transaction.created)
                if is_received:
                    amount += transaction.value
                if transaction.block in native and (transaction.sender == me or is_received):
                    moves.append((transaction.block, (NATIVE, me), amount))
            for internal in self.world.internals:
                if internal.block in native and me in (internal.sender, internal.recipient):
                    amount = internal.amount if internal.recipient == me else -internal.amount
                    moves.append((internal.block, (NATIVE, me), amount))
        return moves

    def _listed(self, subject: Subject) -> dict[str, str | None]:
        listed: dict[str, str | None] = dict.fromkeys([NATIVE, *self.world.common])
        own = [row for row in self.world.subjects.values() if row.kind == "token" and row.tenant == subject.tenant]
        for row in sorted(own, key=lambda row: (row.ledger == subject.ledger, -row.key)):
            listed[row.address] = row.id
        return listed

    def points(self, subject: Subject) -> Points:
        """Return the points of the subject's pairs in each covered range."""
        visible = self.world.visible(subject)
        moves = [move for move in self._movements(subject) if move[0] in visible]
        shown = {pair for _, pair, _ in moves}
        if subject.kind == "wallet":
            shown |= {(token, subject.address) for token in self._listed(subject)}
        shown |= {(subject.address, holder) for key, holder in self.world.found if key == subject.key}
        result: Points = {}
        for first, last in self.world.covered(subject):
            result[first, last] = {}
            for pair in shown:
                if not self._is_amount(subject, pair[0]):
                    continue
                steps: dict[int, list[int]] = defaultdict(list)
                for block, moved, amount in moves:
                    if moved == pair and first <= block <= last:
                        steps[block].append(amount)
                readings = {
                    row.block: row.quantity
                    for row in self.world.readings
                    if (row.token, row.holder) == pair
                    and first - 1 <= row.block <= last
                    and row.quantity is not None
                    and subject.tenant in row.visible_to
                }
                if points := self._balances(steps, readings, first, self._is_born_inside(subject, pair[0], first)):
                    result[first, last][pair] = points
        return result

    def _is_born_inside(self, subject: Subject, token: str, first: int) -> bool:
        """Return whether a range from this block on has all of a token; if its creation is unknown, from block 1 on."""
        return token != NATIVE and first <= self.world.creations.get((subject.tenant, token), 1)

    def _balances(
        self, steps: dict[int, list[int]], readings: dict[int, int], first: int, is_born_inside: bool
    ) -> list[Point]:
        """Compute balances forward from readings; before the first one, from zero or backwards from that reading."""
        opening, opened_by = 0, "Creation"
        if first - 1 in readings:
            opened_by = "Observed"
        elif not is_born_inside:
            if not readings:
                return []
            until = min(readings)
            opening = max(0, readings[until] - sum(sum(steps[when]) for when in steps if when <= until))
            opened_by = "Derived"
        points = []
        for block in sorted(steps.keys() | readings.keys()):
            earlier = [when for when in readings if when < block]
            since = max(earlier, default=None)
            if since is not None:
                derived = readings[since] + sum(sum(steps[when]) for when in steps if since < when <= block)
            elif block == first - 1:
                derived = readings[block]
            else:
                derived = opening + sum(sum(steps[when]) for when in steps if when <= block)
            balance = readings.get(block, derived)
            known = first - 1 if since is None and opened_by == "Creation" else since
            # A balance of zero does not rebase.
            is_resting = derived != 0 and not any(
                (first - 1 if since is None else since) < when <= block for when in steps
            )
            points.append(
                Point(
                    block,
                    sum(steps.get(block, [])),
                    balance,
                    block in steps,
                    block in readings,
                    balance - derived,
                    is_resting,
                    known == block - 1,
                    opened_by,
                )
            )
        return points

    def _supplies(self, subject: Subject, covered: Range) -> list[Point]:
        if not self._is_amount(subject, subject.address):
            return []
        first, last = covered
        steps: dict[int, list[int]] = defaultdict(list)
        for row in self.world.transfers:
            if (
                row.token == subject.address
                and first <= row.block <= last
                and (row.sender == ZERO) != (row.recipient == ZERO)
            ):
                steps[row.block].append(row.amount if row.sender == ZERO else -row.amount)
        readings = {
            row.block: row.quantity
            for row in self.world.supplies
            if row.token == subject.address
            and first - 1 <= row.block <= last
            and row.quantity is not None
            and subject.tenant in row.visible_to
        }
        return self._balances(steps, readings, first, self._is_born_inside(subject, subject.address, first))

    def _behaviour(self, points: Mapping[Any, Mapping[Pair, list[Point]]]) -> str | None:
        """Return the behaviour by the adjustments of holders with more than one known balance in a range."""
        histories = [rows for pairs in points.values() for rows in pairs.values()]
        read_again = [
            rows
            for rows in histories
            if sum(row.is_observed for row in rows) + (rows[0].opened_by == "Creation") > 1
            or any(row.adjustment for row in rows)
        ]
        found = [row for rows in read_again for row in rows if row.adjustment]
        rested = [rows for rows in read_again if any(row.adjustment and row.is_resting for row in rows)]
        could_rest = [rows for rows in read_again if rows in rested or rows[-1].balance]
        if not read_again:
            return None
        if not found:
            return "Standard"
        if len(rested) > 1 and 2 * len(rested) >= len(could_rest):
            return "Rebasing"
        short = [row for row in found if not row.is_resting and row.adjustment < 0]
        gained = [rows for rows in read_again if any(row.adjustment and row not in short for row in rows)]
        ignored = 0
        for rows in read_again:
            readings = [row for row in rows if row.is_observed]
            ignored += sum(bool(row.adjustment) and row.balance == last.balance for last, row in pairwise(readings))
            if readings and rows[0].opened_by == "Creation":
                ignored += bool(readings[0].adjustment) and not readings[0].balance
        if short and len(gained) <= 1 and not ignored:
            return "FeeOnTransfer"
        return "NonConforming"

    def _status(self, block: int) -> str:
        return "Finalized" if self.world.final is not None and block <= self.world.final else "Confirmed"

    def behaviours(self, points: dict[int, Points]) -> dict[tuple[int, str], str | None]:
        """Return the behaviour by (subject, token).

        A wallet's token has the behaviour of the tenant's own token, or else that of all readings of its wallets.
        """
        result: dict[tuple[int, str], str | None] = {}
        subjects = self.world.subjects
        for key, subject in subjects.items():
            if subject.kind == "token":
                result[key, subject.address] = self._behaviour(points[key])
        keys = {subject.id: key for key, subject in subjects.items()}
        for key, subject in subjects.items():
            if subject.kind != "wallet":
                continue
            listed = self._listed(subject)
            for token in {token for pairs in points[key].values() for token, _ in pairs}:
                of_all = {
                    (other, *covered): {pair: rows for pair, rows in pairs.items() if pair[0] == token}
                    for other, row in subjects.items()
                    if (row.kind, row.tenant) == ("wallet", subject.tenant)
                    for covered, pairs in points[other].items()
                }
                own = listed.get(token)
                if token == NATIVE:
                    result[key, token] = "Standard"
                else:
                    result[key, token] = result[keys[own], token] if own else self._behaviour(of_all)
        return result

    def shown(
        self, subject: Subject, points: Points, behaviours: dict[tuple[int, str], str | None], block: int
    ) -> dict[Pair, Shown]:
        """Return the balances of a subject at a covered block, including zeros."""
        result: dict[Pair, Shown] = {}
        covered = next(pairs for (first, last), pairs in points.items() if first <= block <= last)
        for pair, rows in covered.items():
            until = [row for row in rows if row.block <= block]
            if not until:
                continue
            confirming = confirming_block(rows, block, behaviours[subject.key, pair[0]])
            checked = max((row.block for row in until if is_checked(row, rows)), default=None)
            is_adjusted = any(
                row.adjustment and row.block <= block for pairs in points.values() for row in pairs.get(pair, [])
            )
            check = "Unchecked" if confirming is None else "Adjusted" if is_adjusted else "Reconciled"
            result[pair] = Shown(until[-1].balance, check, checked if confirming is None else confirming)
        return result

    def supply_at(
        self, subject: Subject, behaviours: dict[tuple[int, str], str | None], block: int
    ) -> tuple[int | None, str]:
        """Return the supply of a token at a covered block, and its status."""
        covered = next((first, last) for first, last in self.world.covered(subject) if first <= block <= last)
        rows = self._supplies(subject, covered)
        until = [row for row in rows if row.block <= block]
        if not until:
            return None, "Unknown"
        supply = until[-1].balance
        if confirming_block(rows, block, behaviours[subject.key, subject.address]) is None:
            return supply, "Unconfirmed"
        return supply, "Observed" if supply else "ZeroSupply"

    def expected(self) -> Expected:
        """Return the expected rows of all marts."""
        result = Expected(set(), set(), set(), {}, set(), set(), set(), set(), {}, {}, {})
        all_points = {key: self.points(subject) for key, subject in self.world.subjects.items()}
        behaviours = self.behaviours(all_points)
        for subject in self.world.subjects.values():
            points = all_points[subject.key]
            covered = self.world.covered(subject)
            views = [view.first for view in self.world.resolved(subject)]
            result.as_of[subject.key] = (min(views, default=None), covered[-1][1] if covered else None)
            self._coverage(result, subject)
            for (first, _), pairs in points.items():
                for (token, holder), rows in pairs.items():
                    result.balance_changes.update(
                        (
                            subject.key,
                            first,
                            token,
                            holder,
                            row.block,
                            row.movement,
                            row.balance,
                            (row.balance != 0) - (before is not None and before.balance != 0),
                            before is None,
                            row.is_moved,
                            row.is_observed,
                            is_checked(row, rows),
                            row.adjustment != 0,
                            row.opened_by,
                        )
                        for before, row in zip([None, *rows], rows, strict=False)
                    )
            newest = self.shown(subject, points, behaviours, covered[-1][1]) if covered else {}
            positions = [
                (pair, row.balance, row.reconciliation, row.checked_block, points[covered[-1]][pair][0].opened_by)
                for pair, row in newest.items()
                if row.balance
            ]
            if subject.kind == "token":
                supplies = {first: self._supplies(subject, (first, last)) for first, last in covered}
                for first, rows in supplies.items():
                    result.supply_changes.update(
                        (subject.key, first, row.block, row.balance, row.is_observed) for row in rows
                    )
                supply = self.supply_at(subject, behaviours, covered[-1][1]) if covered else (None, "Unknown")
                self._cap_table(result, subject, bool(covered), *supply, positions)
                self._token_activities(result, subject, points)
                result.behaviours[subject.key] = behaviours[subject.key, subject.address]
            else:
                listed = self._listed(subject)
                result.wallet_balances.update(
                    (subject.key, token, listed.get(token), quantity, check, checked, opened_by)
                    for (token, _), quantity, check, checked, opened_by in positions
                )
                if covered and (NATIVE, subject.address) not in points[covered[-1]]:
                    result.wallet_balances.add((subject.key, NATIVE, None, None, "Unchecked", None, None))
                self._wallet_activities(result, subject, points)
                result.holdings_complete[subject.key] = bool(covered) and covered[-1][0] == 1
        return result

    def _coverage(self, result: Expected, subject: Subject) -> None:
        """Add coverage by stretches between edges of views and covered ranges; a failure marks the whole stretch."""
        world, visible, views = self.world, self.world.visible(subject), self.world.resolved(subject)
        windows = [view for view in world.views.values() if (view.origin, view.subject) == ("Window", subject.key)]
        begun = [view.first for view in views if view.origin == "Window"]
        is_awaited = any(view not in views for view in windows)
        end = max([world.known_head, *visible])
        edges = {1, *(block for row in world.covered(subject) for block in (row[0], row[1] + 1))}
        edges |= {edge for view in views for edge in (view.first, end + 1 if view.last is None else view.last + 1)}
        stretches: list[tuple[int, int, bool, str | None]] = []
        cuts = sorted(edge for edge in edges if edge <= end)
        for first, following in zip(cuts, [*cuts[1:], end + 1], strict=True):
            last, is_covered = following - 1, first in visible
            reason: str | None = None
            if not is_covered:
                is_asked = any(view.first <= first and (view.last is None or first <= view.last) for view in views)
                if is_asked:
                    has_failed = any(
                        batch > (world.transformed or 0) and first <= high and low <= last
                        for batch, low, high in world.failures
                    )
                    reason = "ProviderFailed" if has_failed else "NotYetCollected"
                elif begun and first >= min(begun):
                    reason = "TrackingDisabled"
                else:
                    reason = "BeforeTracking" if windows else "NeverTracked"
            if stretches and stretches[-1][2:] == (is_covered, reason):
                stretches[-1] = (stretches[-1][0], last, is_covered, reason)
            else:
                stretches.append((first, last, is_covered, reason))
        result.coverage.update(
            (subject.key, *row, self._source(subject, range(row[0], row[1] + 1)) if row[2] else None)
            for row in stretches
        )
        if is_awaited:
            result.coverage.add((subject.key, world.known_head + 1, None, False, "NotYetCollected", None))

    def _source(self, subject: Subject, blocks: range) -> str:
        """Return the origins of the rows of visible blocks, looked up block by block."""
        native = self.world.visible_native(subject)
        names = {
            row.data_set or "node"
            for row in self.world.coverage
            for block in range(row.first, row.last + 1)
            if row.address == subject.address
            and block in blocks
            and (row.kind == subject.kind or (row.kind == "native" and block in native))
        }
        return ", ".join(sorted(names))

    def _cap_table(
        self,
        result: Expected,
        subject: Subject,
        is_covered: bool,
        supply: int | None,
        status: str,
        positions: list[tuple[Pair, int, str, int | None, str]],
    ) -> None:
        ranked = sorted(positions, key=lambda row: (-row[1], row[0][1]))
        for rank, ((_, holder), quantity, check, checked, opened_by) in enumerate(ranked, 1):
            share = rounded_text(Fraction(100 * quantity, supply)) if supply else None
            result.cap_tables.add((subject.key, rank, holder, quantity, share, check, checked, opened_by))
        quantities = [quantity for _, quantity, *_ in ranked]
        held, count = sum(quantities), len(quantities)
        is_counted = is_covered and self._is_amount(subject, subject.address)
        is_confirmed = status != "Unconfirmed"
        rest = None if supply is None else supply - held
        missing = "ZeroSupply" if supply == 0 else status
        figures: tuple[object, ...] = (None, None, missing, None, missing, None, missing, None, missing)
        if supply:
            share = rounded_text(Fraction(100 * (supply - held), supply))
            figures = (share, *concentration(quantities, supply, status))
        result.summaries[subject.key] = (
            supply,
            status,
            count if is_counted else None,
            rest,
            "Negative" if rest is not None and rest < 0 and is_confirmed else status,
            "Complete" if rest == 0 and is_confirmed and self._is_from_nothing(subject) else "HoldersUnknown",
            *figures,
        )

    def _is_from_nothing(self, subject: Subject) -> bool:
        """Return whether the newest range begins with the chain, with the token or after a supply of zero."""
        first = self.world.covered(subject)[-1][0]
        read = [
            row.quantity
            for row in self.world.supplies
            if row[:2] == (subject.address, first - 1) and subject.tenant in row.visible_to
        ]
        return first == 1 or (0 in read if read else self._is_born_inside(subject, subject.address, first))

    def _token_activities(self, result: Expected, subject: Subject, points: Points) -> None:
        if not self._is_amount(subject, subject.address):
            return
        decimals = self.world.contract(subject.tenant, subject.address)[2]
        visible = self.world.visible(subject)
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
                    None,
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
                                point.is_located,
                            )
                        )

    def _wallet_activities(self, result: Expected, subject: Subject, points: Points) -> None:
        me, listed, out = subject.address, self._listed(subject), result.wallet_activities
        visible, native = self.world.visible(subject), self.world.visible_native(subject)
        for row in self.world.transfers:
            if (
                row.block not in visible
                or me not in (row.sender, row.recipient)
                or not self._is_amount(subject, row.token)
            ):
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
                    None,
                    f"0xt{row.block}-{row.position}",
                    other,
                    row.token,
                    listed.get(row.token),
                    row.amount,
                )
            )
        for transaction in self.world.transactions:
            block, status = transaction.block, self._status(transaction.block)
            target = transaction.recipient or transaction.created
            if block not in native:
                continue
            if transaction.sender == me and transaction.fee != 0:
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
                        f"0xt{block}-{transaction.position}",
                        None,
                        NATIVE,
                        listed[NATIVE],
                        transaction.fee,
                    )
                )
            if transaction.is_success is None or (transaction.is_success and not transaction.value):
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
                        None,
                        f"0xt{block}-{transaction.position}",
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
                        None,
                        f"0xt{block}-{transaction.position}",
                        transaction.sender,
                        NATIVE,
                        listed[NATIVE],
                        transaction.value,
                    )
                )
        for internal in self.world.internals:
            if internal.block in native and me in (internal.sender, internal.recipient):
                is_paid = internal.recipient == me
                out.add(
                    (
                        subject.key,
                        "Internal",
                        "In" if is_paid else "Out",
                        self._status(internal.block),
                        internal.block,
                        internal.position,
                        -1,
                        internal.trace,
                        f"0xt{internal.block}-{internal.position}",
                        internal.sender if is_paid else internal.recipient,
                        NATIVE,
                        listed[NATIVE],
                        internal.amount,
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
                                None,
                                None,
                                token,
                                listed.get(token),
                                abs(point.adjustment),
                            )
                        )
