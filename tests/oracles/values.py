"""Expected values, computed in plain Python from the marts' facts and the prices that tenants entered.

Other tests compare the facts themselves (activities, balances, supplies, coverage) with their definitions.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any, NamedTuple

import duckdb

from tests.worlds.ledger import GENESIS_TIME, NATIVE, Subject
from tests.worlds.values import Pair, ValueWorld, time_of

DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
TYPES = ["Market", "Trade", "NAV", "Bid", "Ask"]
REASONS = ["Quarantined", "StalePrice", "NoPrice", "UnknownDecimals", "NotCovered", "NoPair"]

Row = tuple[Any, ...]


class Quote(NamedTuple):
    """Return the system price at a moment, or the reason for a missing one."""

    price: Decimal | None
    status: str
    source: str | None = None
    is_fallback: bool | None = None
    effective_from: datetime | None = None


class Held(NamedTuple):
    """A quantity of an asset, valued."""

    symbol: str
    value: Decimal | None
    status: str


def text(value: Decimal | None) -> str | None:
    """Canonical decimal text."""
    if value is None:
        return None
    with localcontext(prec=400):
        digits = f"{value + 0:f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def product(raw: int, decimals: int, price: Decimal) -> Decimal:
    """raw / 10^decimals * price, 18 decimals, half to even."""
    with localcontext(prec=400):
        return (Decimal(raw).scaleb(-decimals) * price).quantize(Decimal(10) ** -18, rounding=ROUND_HALF_EVEN)


def change(now: Decimal, before: Decimal) -> str | None:
    """Percentage of the change, 12 decimals, half to even."""
    with localcontext(prec=400):
        return text((100 * (now - before) / before).quantize(Decimal(10) ** -12, rounding=ROUND_HALF_EVEN))


class ValueOracle:
    """The definitions, over the prices of one world and the facts of its marts."""

    def __init__(self, world: ValueWorld, marts: duckdb.DuckDBPyConnection) -> None:
        self.world = world
        self.marts = marts
        self.coverage: dict[int, list[Row]] = defaultdict(list)
        for key, *row in self._rows(
            "subject_key, from_block, from_time, to_time, is_covered, to_block",
            "coverage order by subject_key, from_block",
        ):
            self.coverage[key].append(tuple(row))
        self.balances = self._changes("balance_changes", "token_address", "balance_raw")
        self.holders = self._changes("balance_changes", "holder_address", "balance_raw")
        self.supplies = self._changes("supply_changes", "''", "total_supply_raw")

    def _rows(self, columns: str, mart: str) -> list[Row]:
        return self.marts.execute(f"select {columns} from marts.{mart}").fetchall()

    def _changes(self, mart: str, series: str, quantity: str) -> dict[tuple[int, int], dict[str, list[Row]]]:
        changes: dict[tuple[int, int], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
        columns = f"subject_key, range_from_block, {series}, block_time, {quantity}::varchar"
        for key, first, name, when, raw in self._rows(columns, f"{mart} order by block_number"):
            changes[key, first][name].append((when, int(raw)))
        return changes

    # Prices

    def quote(self, pair: Pair, when: datetime) -> Quote:
        """The system price of a pair at a moment."""
        status = "NoPrice"
        for place, source in enumerate(pair.sources):
            known = [
                row
                for row in self.world.prices
                if row.supported_pair == pair.supported_pair(source) and row.effective_from <= when
            ]
            if not known:
                continue
            newest = max(known, key=lambda row: (row.effective_from, row.key))
            if pair.max_age is None or when - newest.effective_from <= pair.max_age:
                return Quote(newest.price, "Priced", source, place > 0, newest.effective_from)
            status = "StalePrice"
        return Quote(None, status)

    def _usable(self, key: int | None, tenant: str) -> Pair | None:
        pair = self.world.pairs.get(key) if key is not None else None
        return pair if pair is not None and (pair.tenant, pair.priced_in) == (tenant, "USD") else None

    def pair_of(self, subject: Subject, token: str) -> tuple[Pair, str] | None:
        """Return the pair that prices a token for a subject, and the origin of the choice."""
        if subject.kind == "token":
            pair = self._usable(self.world.links.get(subject.key), subject.tenant)
            return (pair, "Linked") if pair else None
        own = [
            one
            for one in self.world.subjects.values()
            if (one.kind, one.tenant, one.address) == ("token", subject.tenant, token)
            and self._usable(self.world.links.get(one.key), subject.tenant)
        ]
        if own:
            first = min(own, key=lambda one: (one.ledger != subject.ledger, one.key))
            return self.world.pairs[self.world.links[first.key]], "Linked"
        symbol = "ETH" if token == NATIVE else self.world.common.get(token)
        pairs = [
            pair
            for pair in self.world.pairs.values()
            if (pair.tenant, pair.priced_as, pair.priced_in) == (subject.tenant, symbol, "USD")
        ]
        return (min(pairs, key=lambda pair: TYPES.index(pair.price_type)), "CommonToken") if pairs else None

    def decimals(self, subject: Subject, token: str) -> int | None:
        """Decimals of a token as its subject's tenant knows it, None when unknown."""
        return 18 if token == NATIVE else self.world.contract(subject.tenant, token)[2]

    def symbol(self, subject: Subject, token: str) -> str:
        """Return the symbol of a position without a price."""
        known = "ETH" if token == NATIVE else self.world.contract(subject.tenant, token)[1]
        return known or self.world.common.get(token) or token

    def hold(self, subject: Subject, token: str, raw: int | None, when: datetime | None) -> Held:
        """Value a quantity at a moment; None: it is unknown."""
        if raw is None:
            return Held(self.symbol(subject, token), None, "NotCovered")
        linked, decimals = self.pair_of(subject, token), self.decimals(subject, token)
        if decimals is None:
            return Held(self.symbol(subject, token), None, "UnknownDecimals")
        if linked is None:
            return Held(self.symbol(subject, token), None, "NoPair")
        assert when is not None
        quote = self.quote(linked[0], when)
        value = None if quote.price is None else product(raw, decimals, quote.price)
        return Held(self.symbol(subject, token), value, quote.status)

    def total(self, held: Iterable[Held]) -> tuple[Decimal | None, str, bool, list[str]]:
        """Return the total of positions: value, status, completeness, and symbols of missing positions."""
        positions = list(held)
        missing = sorted(one.symbol for one in positions if one.status != "Priced")
        if len(missing) < len(positions) or not positions:
            with localcontext(prec=400):
                return (
                    sum((one.value for one in positions if one.value is not None), Decimal(0)),
                    "Priced",
                    not missing,
                    missing,
                )
        statuses = {one.status for one in positions}
        return None, next(reason for reason in REASONS if reason in statuses), False, missing

    # Moments and days

    def range_before(self, key: int, end: datetime) -> int | None:
        """The first block of the covered range that has every block before an instant."""
        rows = self.coverage[key]
        for place, (first, since, until, is_covered, _) in enumerate(rows):
            if not is_covered or since is None or since >= end:
                continue
            # A window that is still to come has no blocks.
            following = next((row[1] for row in rows[place + 1 : place + 2] if row[4] is not None), None)
            if end <= (until + TICK if following is None else following):
                return int(first)
        return None

    def newest(self, key: int) -> datetime | None:
        """The time of the as-of block."""
        return max((row[2] for row in self.coverage[key] if row[3]), default=None)

    def days(self, key: int) -> list[tuple[date, int]]:
        """The finished, covered days of a subject, with their ranges."""
        found, end = [], GENESIS_TIME
        while end <= time_of(self.world.head):
            first = self.range_before(key, end)
            if first is not None:
                found.append(((end - DAY).date(), first))
            end += DAY
        return found

    @staticmethod
    def before(rows: list[Row], end: datetime) -> int | None:
        """The quantity after the last change before an instant."""
        known = [raw for when, raw in rows if when < end]
        return known[-1] if known else None

    def worth(self, subject: Subject, first: int, end: datetime) -> tuple[Decimal | None, str, bool, list[str]]:
        """Return the total value of a wallet just before an instant."""
        quantities = self.held(subject, first, end)
        return self.total(self.hold(subject, token, raw, end - TICK) for token, raw in quantities.items())

    def held(self, subject: Subject, first: int, end: datetime) -> dict[str, int | None]:
        """Return the quantities of a wallet just before an instant that are known and not zero."""
        rows = self.balances[subject.key, first].items()
        return {token: raw for token, changes in rows if (raw := self.before(changes, end))}

    # The marts

    def token_pairs(self) -> set[Row]:
        """Subject, token, decimals, pair, origin."""
        found = set()
        for subject in self.world.subjects.values():
            tokens = {one.address for one in self.world.subjects.values() if one.kind == "token"}
            everything = {*tokens, *self.world.common, NATIVE}
            for token in [subject.address] if subject.kind == "token" else everything:
                linked = self.pair_of(subject, token)
                if linked:
                    found.add((subject.key, token, self.decimals(subject, token), linked[0].key, linked[1]))
        return found

    def activity_values(self, kind: str) -> set[Row]:
        """Id, pair, price, source, fallback, effective from, value, status of every activity of a linked token."""
        token = "token_address" if kind == "wallet" else "''"
        found = set()
        for key, name, when, raw, address in self._rows(
            f"subject_key, activity_id, block_time, amount_raw::varchar, {token}", f"{kind}_activities"
        ):
            subject = self.world.subjects[key]
            asset = address or subject.address
            linked = self.pair_of(subject, asset)
            if linked is None:
                continue
            quote = self.quote(linked[0], when)
            held = Held(self.symbol(subject, asset), None, "UnknownAmount")
            if raw is not None:
                held = self.hold(subject, asset, int(raw), when)
            found.add((name, linked[0].key, *_shown(quote), text(held.value), held.status))
        return found

    def position_values(self, mart: str) -> set[Row]:
        """Subject, holder or token, pair, price, value, status, currency at the as-of block's time."""
        is_wallet, found = mart == "wallet_balances", set()
        for key, name, raw in self._rows(
            f"subject_key, {'token_address' if is_wallet else 'holder_address'}, quantity_raw::varchar", mart
        ):
            subject, when = self.world.subjects[key], self.newest(key)
            token = name if is_wallet else subject.address
            linked, held = self.pair_of(subject, token), self.hold(subject, token, raw and int(raw), when)
            price = self.quote(linked[0], when).price if linked and when else None
            pair = linked[0].key if linked else None
            found.add((key, name, pair, text(price), text(held.value), held.status, "USD" if linked else None))
        return found

    def token_prices(self) -> set[Row]:
        """Subject, pair, price, status, capitalization and its status, earlier price, change and its status."""
        found = set()
        columns = "subject_key, total_supply_raw::varchar, total_supply_status"
        supplies = {key: (supply, status) for key, supply, status in self._rows(columns, "tokens")}
        for subject in self.world.subjects.values():
            if subject.kind != "token":
                continue
            linked, when = self.pair_of(subject, subject.address), self.newest(subject.key)
            if linked is None or when is None:
                status = "NotCovered" if linked else "NoPair"
                pair = linked[0].key if linked else None
                found.add((subject.key, pair, None, status, None, status, None, None, status))
                continue
            now, before = self.quote(linked[0], when), self.quote(linked[0], when - DAY)
            (supply, supply_status), decimals = supplies[subject.key], self.decimals(subject, subject.address)
            cap, cap_status = None, now.status
            if now.price is not None and supply is None:
                cap_status = "UnknownSupply"
            elif now.price is not None and decimals is None:
                cap_status = "UnknownDecimals"
            elif now.price is not None:
                cap = product(int(supply), decimals or 0, now.price)
                cap_status = "Unconfirmed" if supply_status == "Unconfirmed" else "Priced"
            moved = change(now.price, before.price) if now.price is not None and before.price is not None else None
            moved_status = now.status if now.price is None else before.status
            found.add(
                (
                    subject.key,
                    linked[0].key,
                    text(now.price),
                    now.status,
                    text(cap),
                    cap_status,
                    text(before.price),
                    moved,
                    moved_status,
                )
            )
        return found

    def wallet_totals(self) -> set[Row]:
        """Subject, total, status, completeness, missing, total a day before, change, its status, omitted symbols."""
        found = set()
        positions: dict[int, dict[str, int | None]] = defaultdict(dict)
        for key, token, raw in self._rows("subject_key, token_address, quantity_raw::varchar", "wallet_balances"):
            positions[key][token] = raw and int(raw)
        for subject in self.world.subjects.values():
            if subject.kind != "wallet":
                continue
            when = self.newest(subject.key)
            if when is None:
                found.add((subject.key, None, "NotCovered", False, (), None, None, "NotCovered", ()))
                continue
            value, status, is_complete, missing = self.total(
                self.hold(subject, token, raw, when) for token, raw in positions[subject.key].items()
            )
            first = self.range_before(subject.key, when - DAY + TICK)
            before, moved, moved_status, omitted = None, None, "NotCovered", []
            if first is not None:
                earlier = self.held(subject, first, when - DAY + TICK)
                newest = max(row[0] for row in self.coverage[subject.key] if row[3])
                if first == newest:
                    earlier |= {token: None for token, raw in positions[subject.key].items() if raw is None}
                before, *_ = self.total(self.hold(subject, token, raw, when - DAY) for token, raw in earlier.items())
                moved, moved_status, omitted = self.movement(subject, positions[subject.key], earlier, when)
            found.add(
                (
                    subject.key,
                    text(value),
                    status,
                    is_complete,
                    tuple(missing),
                    text(before),
                    moved,
                    moved_status,
                    tuple(omitted),
                )
            )
        return found

    def movement(
        self, subject: Subject, now: dict[str, int | None], before: dict[str, int | None], when: datetime
    ) -> tuple[str | None, str, list[str]]:
        """Return the change of a wallet's value in a day, its status, and symbols without values at both moments."""
        totals, omitted, reasons = [Decimal(0), Decimal(0)], [], set()
        for token in now | before:
            held = [
                self.hold(subject, token, quantities[token], moment)
                if token in quantities
                else Held(self.symbol(subject, token), Decimal(0), "Priced")
                for quantities, moment in ((now, when), (before, when - DAY))
            ]
            unknown = [one.status for one in held if one.value is None]
            if unknown:
                omitted.append(held[0].symbol)
                reasons.add(unknown[0])
                continue
            with localcontext(prec=400):
                totals = [total + (one.value or 0) for total, one in zip(totals, held, strict=True)]
        omitted.sort()
        if omitted and len(omitted) == len(now | before):
            return None, next(reason for reason in REASONS if reason in reasons), omitted
        if not totals[1]:
            return None, "ZeroBase", omitted
        return change(*totals), "Partial" if omitted else "Priced", omitted

    def wallet_value_days(self) -> set[Row]:
        """Subject, range, day, value, status, completeness, missing, completeness of holdings."""
        found = set()
        for subject in self.world.subjects.values():
            if subject.kind == "wallet":
                for day, first in self.days(subject.key):
                    value, status, is_complete, missing = self.worth(subject, first, _end(day))
                    found.add((subject.key, first, day, text(value), status, is_complete, tuple(missing), first <= 1))
        return found

    def token_capitalization_days(self) -> set[Row]:
        """Subject, day, supply and its status, value, status."""
        changes: dict[tuple[int, int], list[Row]] = defaultdict(list)
        for key, first, when, status in self._rows(
            "subject_key, range_from_block, block_time, supply_status_after", "token_supplies order by block_number"
        ):
            changes[key, first].append((when, status))
        found = set()
        for key, first, day, _, supply, *_, value, status in self.token_value_days():
            known = [status for when, status in changes[key, first] if when < _end(day)]
            supply_status = known[-1] if known else "Unknown"
            is_unconfirmed = (status, supply_status) == ("Priced", "Unconfirmed")
            found.add((key, day, supply, supply_status, value, "Unconfirmed" if is_unconfirmed else status))
        return found

    def token_value_days(self) -> set[Row]:
        """Subject, range, day, pair, supply, price and its status, source, fallback, effective from, value, status."""
        found = set()
        for subject in self.world.subjects.values():
            linked = self.pair_of(subject, subject.address) if subject.kind == "token" else None
            for day, first in self.days(subject.key) if linked else ():
                assert linked
                supply = self.before(self.supplies[subject.key, first][""], _end(day))
                quote, decimals = self.quote(linked[0], _end(day) - TICK), self.decimals(subject, subject.address)
                value, status = None, quote.status
                if quote.price is not None and supply is None:
                    status = "UnknownSupply"
                elif quote.price is not None and decimals is None:
                    status = "UnknownDecimals"
                elif quote.price is not None and supply is not None:
                    value = product(supply, decimals or 0, quote.price)
                raw = None if supply is None else str(supply)
                found.add(
                    (subject.key, first, day, linked[0].key, raw, *_shown(quote), quote.status, text(value), status)
                )
        return found

    def token_holder_days(self) -> set[Row]:
        """Subject, range, day, holders: every balance at the end of the day that is not zero."""
        return {
            (
                subject.key,
                first,
                day,
                sum(1 for rows in self.holders[subject.key, first].values() if self.before(rows, _end(day))),
            )
            for subject in self.world.subjects.values()
            if subject.kind == "token"
            for day, first in self.days(subject.key)
        }


def _end(day: date) -> datetime:
    return datetime.combine(day, time()) + DAY


def _shown(quote: Quote) -> Row:
    return text(quote.price), quote.source, quote.is_fallback, quote.effective_from
