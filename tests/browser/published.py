"""The marts of the market: anchors, changes, activities, daily values."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.api.marts import publish
from tests.api.pricing import step_row
from tests.api.valued import naive, sum_of, value_of
from tests.api.world import NETWORKS, World, hash_of, make_world, marts_rows, text_of, time_of
from tests.browser.configured import (
    DESK_ID,
    DESK_NAME,
    LUMEN_ID,
    LUMEN_NAME,
    TREASURY_ID,
    TREASURY_NAME,
    configure,
    pair_id,
)
from tests.browser.market import (
    ASSETS,
    DAYS,
    DESK,
    LUMEN,
    NEWEST,
    RANGES,
    SPAM_SYMBOL,
    SUPPLY,
    TREASURY,
    UNPRICED_DAYS,
    USDC,
    Market,
    block_of,
)

Rows = dict[str, list[dict[str, Any]]]


def make_market(directory: Path) -> World:
    """Make a world with the market beside its other examples, and publish it as version 1."""
    world = make_world(directory)
    # The treasury's USDC is valued by its symbol, because it is a well-known token.
    common = f'[[network.token]]\nsymbol = "USDC"\naddress = "{USDC}"\ndecimals = 6\n\n[[network]]\nname = "sepolia"'
    world.settings.networks_file.write_text(NETWORKS.replace('[[network]]\nname = "sepolia"', common))
    with world.store.write() as session:
        configure(session, world)
    publish_market(world, 1)
    return world


def publish_market(world: World, version: int, *, without_smallest: bool = False) -> None:
    """Publish the market as a version, optionally without its smallest holder."""
    rows = market_rows(world)
    if without_smallest:
        token = world.subject_keys[LUMEN_ID]
        own = [row for row in rows["token_holders"] if row["subject_key"] == token]
        rows["token_holders"].remove(min(own, key=lambda row: row["quantity_raw"]))
        for row in rows["tokens"]:
            if row["subject_key"] == token:
                row["holder_count"] -= 1
    publish(world.settings.serving_dir, version, rows)


def publish_register(world: World, version: int, count: int) -> None:
    """Publish the market with smaller holders added up to `count`; together they own the whole supply."""
    rows = market_rows(world)
    token = world.subject_keys[LUMEN_ID]
    own = [row for row in rows["token_holders"] if row["subject_key"] == token]
    least = min(row["quantity_raw"] for row in own)
    added = [
        own[0] | {"holder_address": f"0xbb{place:038x}", "quantity_raw": least - place}
        for place in range(1, count - len(own) + 1)
    ]
    rows["token_holders"] += added
    supply = sum(row["quantity_raw"] for row in own + added)
    for row in rows["tokens"] + rows["supply_changes"]:
        if row["subject_key"] == token:
            row |= {"total_supply_raw": supply, "total_supply": text_of(supply, 18)}
    for row in rows["tokens"]:
        if row["subject_key"] == token:
            row["holder_count"] = count
    publish(world.settings.serving_dir, version, rows)


def publish_departure(world: World, version: int) -> tuple[str, str]:
    """Publish the market with a holder that finally sends everything away, and one unseen in the first range.

    Returns:
        Both addresses.
    """
    rows = market_rows(world)
    token = world.subject_keys[LUMEN_ID]
    gone, unseen = Market().holders[200:202]
    own = [row for row in rows["balance_changes"] if row["subject_key"] == token]
    last = [row for row in own if row["holder_address"] == gone][-1]
    rows["balance_changes"].append(
        last
        | {"block_number": NEWEST, "block_time": naive(time_of(NEWEST)), "movement_raw": -last["balance_raw"]}
        | {"balance_raw": 0, "balance": "0", "holder_change": -1, "is_moved": True}
        | {"is_observed": False, "is_checked": False}
    )
    for row in own:
        if row["holder_address"] == unseen and row["range_from_block"] == RANGES[0][0]:
            rows["balance_changes"].remove(row)
    rows["token_holders"] = [
        row for row in rows["token_holders"] if (row["subject_key"], row["holder_address"]) != (token, gone)
    ]
    for row in rows["tokens"]:
        if row["subject_key"] == token:
            row["holder_count"] -= 1
    publish(world.settings.serving_dir, version, rows)
    return gone, unseen


def publish_folded_fees(world: World, version: int, count: int) -> None:
    """Publish the market with some of the treasury's fees moved into a transaction with a transfer."""
    rows = market_rows(world)
    wallet = world.subject_keys[TREASURY_ID]
    own = [row for row in rows["wallet_activities"] if row["subject_key"] == wallet]
    fees, sent = ([row for row in own if row["activity_type"] == kind][-count:] for kind in ("Fee", "TransferOut"))
    values = {row["activity_id"]: row for row in rows["wallet_activity_values"] if row["subject_key"] == wallet}
    place = ("block_number", "block_hash", "block_time", "transaction_index", "transaction_hash")
    for fee, other in zip(fees, sent, strict=True):
        for row in (fee, values[fee["activity_id"]]):
            row |= {name: other[name] for name in place if name in row}
    publish(world.settings.serving_dir, version, rows)


def market_rows(world: World) -> Rows:
    """Return the rows of the example marts with those of the market."""
    rows, market = defaultdict(list, marts_rows(world)), Market()
    for row in rows["networks"]:
        row |= {"head_number": NEWEST + 3, "head_time": naive(time_of(NEWEST + 3)), "final_number": NEWEST - 64}
    known = {row["block_number"] for row in rows["blocks"]}
    noted = {move.block for move in market.moves} | {
        bound for first, last in RANGES for bound in (first - 1, first, last)
    }
    # Days begin and end with stored blocks, so a requested day ends at a stored block.
    noted |= {block for day in range(DAYS + 1) for block in (block_of(day) - 1, block_of(day))}
    rows["blocks"] += [
        {
            "network": "ethereum",
            "block_number": block,
            "block_hash": hash_of(block),
            "block_time": naive(time_of(block)),
            "is_tail": True,
        }
        for block in sorted(noted - known)
    ]
    teller = _Teller(rows, world, market)
    teller.tell_subjects()
    teller.tell_prices()
    teller.tell_token()
    teller.tell_wallet()
    return dict(rows)


class _Teller:
    """Writer of the rows of one market."""

    def __init__(self, rows: Rows, world: World, market: Market) -> None:
        self._rows, self._world, self._market = rows, world, market
        self._token = {"tenant_id": world.tenant_id, "subject_key": world.subject_keys[LUMEN_ID]}
        self._wallet = {"tenant_id": world.tenant_id, "subject_key": world.subject_keys[TREASURY_ID]}
        self._balances = market.balances_before(NEWEST + 1)

    def tell_subjects(self) -> None:
        state = {
            "ledger_id": "led_x",
            "network": "ethereum",
            "view_from_block": 100,
            "view_from_time": naive(time_of(100)),
            "as_of_block_number": NEWEST,
            "as_of_block_hash": hash_of(NEWEST),
            "as_of_block_time": naive(time_of(NEWEST)),
            "as_of_finality": "Confirmed",
        }
        wallet = {"wallet_id": TREASURY_ID, "address": TREASURY, "name": TREASURY_NAME, "holdings_complete": False}
        desk = {"wallet_id": DESK_ID, "address": DESK, "name": DESK_NAME, "holdings_complete": False}
        token = {"token_id": LUMEN_ID, "address": LUMEN, "contract_status": "Fungible", "standard": "ERC-20"}
        token |= {"decimals": 18, "behaviour": "Standard", "symbol": "LMN", "name": LUMEN_NAME}
        self._rows["wallets"].append(self._wallet | state | wallet)
        self._rows["wallets"].append(self._wallet | state | desk | {"subject_key": self._world.subject_keys[DESK_ID]})
        self._rows["tokens"].append(self._token | state | token)
        bounds = [
            (0, 99, "BeforeTracking"),
            (*RANGES[0], None),
            (RANGES[0][1] + 1, RANGES[1][0] - 1, "TrackingDisabled"),
            (*RANGES[1], None),
            (NEWEST + 1, NEWEST + 3, "NotYetCollected"),
        ]
        self._rows["coverage"] += [
            keys
            | {
                "from_block": first,
                "to_block": last,
                "from_time": naive(time_of(first)),
                "to_time": naive(time_of(last)),
                "is_covered": reason is None,
                "reason": reason,
            }
            for keys in (self._token, self._wallet)
            for first, last, reason in bounds
        ]

    def tell_prices(self) -> None:
        for asset, prices in self._market.prices.items():
            known = ASSETS[asset]
            keys = {"tenant_id": self._world.tenant_id, "pair_key": known.pair_key}
            self._rows["price_pairs"].append(
                keys
                | {"pair_id": pair_id(known), "priced_as": known.symbol, "priced_in": "USD", "price_type": "Trade"}
                | {"max_age_seconds": 86_400}
            )
            self._rows["price_routes"].append(
                keys | {"source_id": "src_kraken", "position": 0, "status": "Resolved", "derivation": "Direct"}
            )
            for day, price in enumerate(prices):
                begin = time_of(block_of(day))
                self._rows["system_prices"].append(
                    keys
                    | (step_row(price, naive(begin)) if price else {"price_status": "StalePrice"})
                    | {
                        "valid_from": naive(begin),
                        "valid_until": naive(begin + timedelta(days=1)) if day < DAYS else None,
                    }
                )
        own = {row["subject_key"] for row in self._rows["wallets"] if row["tenant_id"] == self._world.tenant_id}
        links = [(key, address) for key in own for address in ASSETS] + [(self._token["subject_key"], LUMEN)]
        self._rows["token_pairs"] += [
            {
                "tenant_id": self._world.tenant_id,
                "subject_key": subject_key,
                "network": "ethereum",
                "token_address": address,
                "token_decimals": asset.decimals,
                "pair_key": asset.pair_key,
                "pair_id": pair_id(asset),
                "priced_as": asset.symbol,
                "priced_in": "USD",
                "origin": "Linked" if address == LUMEN else "CommonToken",
            }
            for subject_key, address in links
            if (asset := ASSETS[address]).pair_key
        ]

    def tell_token(self) -> None:
        held = {holder: raw for (asset, holder), raw in self._balances.items() if asset == LUMEN and raw}
        ranked = sorted(held.items(), key=lambda holding: (-holding[1], holding[0]))
        self._rows["token_holders"] += [
            self._token
            | {
                "holder_address": holder,
                "quantity_raw": raw,
                "reconciliation": ("Reconciled", "Reconciled", "Unchecked", "Adjusted")[rank % 4],
                "checked_block_number": NEWEST,
                "opened_by": "Observed",
            }
            for rank, (holder, raw) in enumerate(ranked, start=1)
        ]
        supply = {"total_supply_raw": SUPPLY, "total_supply": text_of(SUPPLY, 18), "holder_count": len(ranked)}
        self._rows["tokens"][-1].update(supply | {"total_supply_status": "Observed", "opens_without_holders": False})
        self._rows["supply_changes"] += [
            self._token
            | {
                "range_from_block": first,
                "block_number": first - 1,
                "block_time": naive(time_of(first - 1)),
                "total_supply_raw": SUPPLY,
                "total_supply": text_of(SUPPLY, 18),
                "is_moved": False,
                "is_observed": True,
                "is_checked": True,
                "is_adjusted": False,
                "opened_by": "Observed",
            }
            for first, _ in RANGES
        ]
        self._tell_changes(self._token, [(LUMEN, holder) for holder in self.holders])
        self._tell_token_activities()
        price, before = (self._market.price(LUMEN, time_of(NEWEST) - timedelta(days=days)) for days in (0, 1))
        self._rows["token_prices"].append(
            self._token
            | {
                "pair_key": ASSETS[LUMEN].pair_key,
                "pair_id": pair_id(ASSETS[LUMEN]),
                "priced_as": "LMN",
                "priced_in": "USD",
                "as_of_time": naive(time_of(NEWEST)),
                "price": price,
                "price_text": price,
                "price_status": "Priced",
                "price_effective_from": naive(time_of(block_of(DAYS))),
                "source_id": "src_kraken",
                "is_fallback": False,
                "market_capitalization": value_of(text_of(SUPPLY, 18), price),
                "market_capitalization_status": "Priced",
                "price_24h_text": before,
                "change24h": _change(price, before),
                "change24h_status": "Priced",
            }
        )

    @property
    def holders(self) -> list[str]:
        return self._market.holders

    def tell_wallet(self) -> None:
        self._tell_changes(self._wallet, [(asset, TREASURY) for asset in ASSETS])
        now = {asset: self._balances[asset, TREASURY] for asset in ASSETS}
        self._rows["wallet_balances"] += [
            self._wallet
            | {
                "token_address": address,
                "token_id": LUMEN_ID if address == LUMEN else None,
                "token_symbol": asset.symbol,
                "token_decimals": asset.decimals,
                "quantity_raw": now[address],
                "quantity": text_of(now[address], asset.decimals),
                "quantity_approx": now[address] / 10**asset.decimals,
                "reconciliation": "Adjusted" if address == USDC else "Reconciled",
                "checked_block_number": NEWEST,
                "opened_by": "Observed",
            }
            for address, asset in ASSETS.items()
        ]
        self._tell_wallet_activities()
        total = self._worth(now, time_of(NEWEST))
        earlier = time_of(NEWEST) - timedelta(days=1)
        before = self._worth(self._held_at(earlier), earlier)
        self._rows["wallet_totals"].append(
            self._wallet
            | {
                "as_of_time": naive(time_of(NEWEST)),
                "total_value": total,
                "total_value_status": "Priced",
                "value_complete": False,
                "unpriced": [SPAM_SYMBOL],
                "total_value_24h": before,
                "change24h": _change(total, before),
                "change24h_status": "Partial",
                "change24h_omitted": [SPAM_SYMBOL],
                "currency": "USD",
            }
        )
        for day in range(DAYS):
            end = time_of(block_of(day + 1))
            first = next((first for first, last in RANGES if time_of(first) < end <= time_of(last)), None)
            if first is None:
                continue
            moment = end - timedelta(microseconds=1)
            is_stale = day in UNPRICED_DAYS
            self._rows["wallet_value_days"].append(
                self._wallet
                | {
                    "range_from_block": first,
                    "day": moment.date(),
                    "value": self._worth(self._held_at(moment), moment),
                    "value_status": "Priced",
                    "value_complete": False,
                    "unpriced": sorted([SPAM_SYMBOL, "LMN"] if is_stale else [SPAM_SYMBOL]),
                    "holdings_complete": False,
                }
            )

    def _held_at(self, moment: datetime) -> dict[str, int]:
        block = 100 + (moment - time_of(100)) // timedelta(seconds=12)
        balances = self._market.balances_before(block + 1)
        return {asset: balances[asset, TREASURY] for asset in ASSETS}

    def _worth(self, held: dict[str, int], moment: datetime) -> str:
        values = (
            value_of(text_of(raw, ASSETS[asset].decimals), self._market.price(asset, moment))
            for asset, raw in held.items()
        )
        return sum_of(value for value in values if value is not None)

    def _tell_changes(self, keys: dict[str, Any], held: Iterable[tuple[str, str]]) -> None:
        """Write balances of assets and holders: an anchor before each range, then the balance after each move."""
        watched = set(held)
        for (first, _), moves in self._market.seen():
            balances = self._market.balances_before(first)
            now = {pair: balances[pair] for pair in sorted(watched)}
            for pair, raw in now.items():
                self._rows["balance_changes"].append(keys | self._balance(first, first - 1, pair, None, raw))
            for move in moves:
                steps: dict[tuple[str, str], int] = defaultdict(int)
                steps[move.asset, move.sender] -= move.amount
                if move.recipient is not None:
                    steps[move.asset, move.recipient] += move.amount
                for pair in sorted(watched & set(steps)):
                    before, now[pair] = now[pair], now[pair] + steps[pair]
                    self._rows["balance_changes"].append(
                        keys | self._balance(first, move.block, pair, before, now[pair])
                    )

    def _balance(self, first: int, block: int, pair: tuple[str, str], before: int | None, raw: int) -> dict[str, Any]:
        asset, holder = pair
        return {
            "range_from_block": first,
            "token_address": asset,
            "token_symbol": ASSETS[asset].symbol,
            "holder_address": holder,
            "block_number": block,
            "block_time": naive(time_of(block)),
            "movement_raw": None if before is None else raw - before,
            "balance_raw": raw,
            "balance": text_of(raw, ASSETS[asset].decimals),
            "holder_change": (raw != 0) - bool(before),
            "is_moved": before is not None,
            "is_observed": before is None,
            "is_checked": before is None,
            "is_adjusted": False,
            "opened_by": "Observed",
        }

    def _tell_token_activities(self) -> None:
        moves = [move for _, seen in self._market.seen() for move in seen if move.asset == LUMEN]
        for number, move in enumerate(moves):
            raw = move.amount
            row = self._token | {
                "token_id": LUMEN_ID,
                "activity_id": f"act-lmn-{number}",
                "activity_type": "Transfer",
                "status": "Finalized" if move.block <= NEWEST - 64 else "Confirmed",
                **_place(move.block),
                "log_index": 3,
                "from_address": move.sender,
                "to_address": move.recipient,
                "amount_raw": raw,
                "amount": text_of(raw, 18),
                "amount_approx": raw / 10**18,
            }
            self._rows["token_activities"].append(row)
            self._tell_value("token_activity_values", row, LUMEN)

    def _tell_wallet_activities(self) -> None:
        moves = [move for _, seen in self._market.seen() for move in seen if TREASURY in (move.sender, move.recipient)]
        for number, move in enumerate(moves):
            is_in, is_own = move.recipient == TREASURY, move.sender == move.recipient
            other = move.sender if is_in else move.recipient
            kind = "Fee" if move.recipient is None else "TransferIn" if is_in else "TransferOut"
            asset = ASSETS[move.asset]
            row = self._wallet | {
                "wallet_id": TREASURY_ID,
                "activity_id": f"act-tre-{number}",
                "activity_type": "Self" if is_own else kind,
                "direction": None if is_own else "In" if is_in else "Out",
                "status": "Finalized" if move.block <= NEWEST - 64 else "Confirmed",
                **_place(move.block),
                "log_index": -1 if kind == "Fee" else 3,
                "counterparty_address": other,
                "token_address": move.asset,
                "token_id": LUMEN_ID if move.asset == LUMEN else None,
                "token_symbol": asset.symbol,
                "amount_raw": move.amount,
                "amount": text_of(move.amount, asset.decimals),
                "amount_status": "Known",
                "amount_approx": move.amount / 10**asset.decimals,
            }
            self._rows["wallet_activities"].append(row)
            if asset.pair_key is not None:
                self._tell_value("wallet_activity_values", row, move.asset)

    def _tell_value(self, table: str, row: dict[str, Any], asset: str) -> None:
        kept = ("tenant_id", "subject_key", "activity_id", "block_number", "block_time", "transaction_index")
        price = self._market.price(asset, row["block_time"].replace(tzinfo=UTC))
        self._rows[table].append(
            {name: row[name] for name in kept}
            | {
                "token_address": asset,
                "pair_key": ASSETS[asset].pair_key,
                "price": price,
                "price_text": price,
                "value": value_of(row["amount"], price),
                "value_status": "Priced" if price else "StalePrice",
            }
        )


def _place(block: int) -> dict[str, Any]:
    return {
        "block_number": block,
        "block_hash": hash_of(block),
        "block_time": naive(time_of(block)),
        "transaction_index": 1,
        "transaction_hash": f"0x{block * 7919:064x}",
    }


def _change(now: str | None, before: str | None) -> str | None:
    """Return a change in percent, half to even at 12 decimals."""
    if now is None or before is None:
        return None
    return text_of(round(100 * 10**12 * (Fraction(now) / Fraction(before) - 1)), 12)
