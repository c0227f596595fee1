"""A token with 130 holders and a wallet with 90 activities over six weeks, computed in plain Python.

Blocks 100 to 60,000 and 66,000 to 300,000 are covered, one every 12 seconds from 1 February. The token has 6 decimals.
Amounts, orders and readings come from a fixed seed; the tests compute the expected contents of reports.
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from api.examples import EXAMPLE_LEDGER, EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.reports.links import LinkMaker, Shown
from api.reports.schemas.links import Report
from api.reports.tokens import TokenSigner
from control import access, ledgers, service_secrets
from control.models import Subject
from control.settings import Settings
from control.store import ControlStore
from tests.api.marts import publish
from tests.api.pricing import step_row
from tests.api.valued import ETHER_PAIR_KEY, SMALL_PAIR_KEY, link_small, naive, sum_of, value_of, valued_rows
from tests.api.world import World, hash_of, text_of, time_of

RANGES = ((100, 60_000), (66_000, 300_000))
NEWEST = 300_000
DECIMALS = 6
PRICE_CHANGE = 100_000
PRICES = {SMALL_PAIR_KEY: ("2.5", "3.000000000000000001"), ETHER_PAIR_KEY: ("3000", "3141.592653589793238462")}
TOKEN_ADDRESS = "0x" + "a" * 40
WALLET_ADDRESS = "0x" + "1" * 40
ODD_ADDRESS = "0x" + "7" * 40  # an asset without a pair and without known decimals
NAMES = {4: "Treasury", 9: "Cold & <b>warm</b>", 18: "=HYPERLINK(1)", 30: "Straße"}

_random = random.Random(7)


@dataclass(frozen=True)
class Step:
    """A holder's balance after a block of a range; an adjustment covers any difference from the movements."""

    first: int
    block: int
    balance: int
    movement: int
    is_observed: bool
    is_adjusted: bool


def holder(number: int) -> str:
    """Return the address of a holder; addresses sort in another order than numbers."""
    return f"0x{(number * 7919) % 104_729:08x}{number:032x}"


def price_at(pair_key: int, moment: datetime) -> str:
    """Return the price of a pair."""
    return PRICES[pair_key][moment >= time_of(PRICE_CHANGE)]


def _steps(number: int) -> list[Step]:
    found: list[Step] = []
    for place, (first, last) in enumerate(RANGES):
        if (number + place) % 11 == 0:
            continue  # never seen in this range
        balance = 0
        blocks = sorted(_random.sample(range(first, last), 3))
        if number % 5:
            # Read before the range begins.
            balance = _random.choice((0, 10**6, _random.randrange(10**12)))
            found.append(Step(first, first - 1, balance, 0, True, False))
        for turn, block in enumerate(blocks):
            ends = number % 7 == 3 and turn == 2
            after = 0 if ends else _random.choice((5_000_000, _random.randrange(1, 10**13)))
            is_adjusted = number % 13 == 5 and turn == 1
            moved = after - balance - (17 if is_adjusted else 0)
            found.append(Step(first, block, after, moved, is_adjusted, is_adjusted))
            balance = after
    return found


STEPS = {number: _steps(number) for number in range(1, 141)}


def state_at(block: int) -> dict[int, int]:
    """Return the known balances by holder, including zero, at a block, from the range that contains it."""
    first = next(first for first, last in RANGES if first <= block <= last)
    known: dict[int, int] = {}
    for number, steps in STEPS.items():
        for step in steps:
            if step.first == first and step.block <= block:
                known[number] = step.balance
    return known


def reconciliation_of(number: int, block: int) -> str:
    """Return the reconciliation status of a holder's balance at a block."""
    steps = [step for step in STEPS[number] if step.block <= block]
    first = next(first for first, last in RANGES if first <= block <= last)
    if any(step.is_adjusted for step in steps):
        return "Adjusted"
    own = [step for step in steps if step.first == first]
    moved = max((step.block for step in own if not step.is_observed or step.movement), default=0)
    read = max((step.block for step in own if step.is_observed), default=-1)
    return "Reconciled" if read >= moved else "Unchecked"


def link_unchecked(settings: Settings, store: ControlStore, key: str, report: Report, **params: str) -> str:
    """Return a link without checking its moments: on an open page, a moment may no longer be covered."""
    with store.read() as session:
        signer = TokenSigner(service_secrets.get(session, service_secrets.EMBED_SIGNING_KEY))
        principal = access.authenticate(session, key)
    return LinkMaker(settings, store, signer).open(principal, Shown(report, "", params), "auto").report_url


def publish_reported(world: World, version: int = 1) -> None:
    """Link the token, name some holders, and publish a version."""
    link_small(world)
    with world.store.write() as session:
        ledger = ledgers.get(session, world.tenant_id, EXAMPLE_LEDGER)
        for number, name in NAMES.items():
            session.add(
                Subject(
                    id=f"wal_01k9zr3m5e8v2c7q4w6t1x00{number:02d}",
                    kind="wallet",
                    tenant_id=world.tenant_id,
                    ledger_id=ledger.id,
                    address=holder(number),
                    name=name,
                    search_text=f"{name}\n{holder(number)}".casefold(),
                    created_at=time_of(90),
                    updated_at=time_of(90),
                )
            )
    publish(world.settings.serving_dir, version, reported_rows(world))


def reported_rows(world: World) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the version."""
    rows = valued_rows(world)
    token, wallet = world.subject_keys[EXAMPLE_TOKEN_ID], world.subject_keys[EXAMPLE_WALLET_ID]
    own = {token, wallet}
    for table in (
        "balance_changes",
        "supply_changes",
        "token_holders",
        "coverage",
        "wallet_activities",
        "wallet_activity_values",
        "wallet_balances",
    ):
        rows[table] = [row for row in rows[table] if row["subject_key"] not in own]
    keys = {"tenant_id": world.tenant_id, "subject_key": token}
    stored = {step.block for steps in STEPS.values() for step in steps} | {
        activity["block_number"] for activity in ACTIVITIES
    }
    stored |= {99, 100, 60_000, 65_999, 66_000, 250_000, 277_000, NEWEST}
    rows["blocks"] = [
        {
            "network": "ethereum",
            "block_number": block,
            "block_hash": hash_of(block),
            "block_time": naive(time_of(block)),
            "is_tail": True,
        }
        for block in sorted(stored)
    ]
    rows["coverage"] += [
        {
            "tenant_id": world.tenant_id,
            "subject_key": subject,
            "from_block": first,
            "to_block": last,
            "from_time": naive(time_of(first)) if covered else None,
            "to_time": naive(time_of(last)) if covered else None,
            "is_covered": covered,
            "reason": reason,
        }
        for subject in own
        for first, last, covered, reason in (
            (0, 99, False, "BeforeTracking"),
            (100, 60_000, True, None),
            (60_001, 65_999, False, "TrackingDisabled"),
            (66_000, NEWEST, True, None),
        )
    ]
    rows["system_prices"] = [
        {
            "tenant_id": world.tenant_id,
            "pair_key": pair,
            "valid_from": naive(begin),
            "valid_until": naive(end) if end else None,
            **step_row(price, naive(begin)),
        }
        for pair, prices in PRICES.items()
        for price, begin, end in zip(
            prices, (time_of(0), time_of(PRICE_CHANGE)), (time_of(PRICE_CHANGE), None), strict=True
        )
    ]
    rows["balance_changes"] += [
        {
            **keys,
            "range_from_block": step.first,
            "token_address": TOKEN_ADDRESS,
            "token_symbol": "SMALL",
            "holder_address": holder(number),
            "block_number": step.block,
            "block_time": naive(time_of(step.block)),
            "movement_raw": step.movement,
            "balance_raw": step.balance,
            "balance": text_of(step.balance, DECIMALS),
            "is_moved": step.movement != 0 or not step.is_observed,
            "is_observed": step.is_observed,
            "is_checked": step.is_observed,
            "is_adjusted": step.is_adjusted,
            "opened_by": "Observed",
        }
        for number, steps in STEPS.items()
        for step in steps
    ]
    supply = 10**15
    rows["supply_changes"] += [
        {
            **keys,
            "range_from_block": first,
            "block_number": first - 1,
            "block_time": naive(time_of(first - 1)),
            "total_supply_raw": supply,
            "total_supply": text_of(supply, DECIMALS),
            "is_moved": False,
            "is_observed": True,
            "is_checked": True,
            "is_adjusted": False,
            "opened_by": "Observed",
        }
        for first, _ in RANGES
    ]
    _add_cap_table(rows, keys)
    _add_wallet(rows, world.tenant_id, wallet)
    for row in rows["tokens"] + rows["wallets"]:
        if row["subject_key"] in own:
            row |= {"as_of_block_number": NEWEST, "as_of_block_hash": hash_of(NEWEST), "as_of_finality": "Confirmed"}
            row["as_of_block_time"] = naive(time_of(NEWEST))
    for row in rows["tokens"]:
        if row["subject_key"] == token:
            row |= {"decimals": DECIMALS, "total_supply_raw": supply, "total_supply": text_of(supply, DECIMALS)}
            row["total_supply_status"] = "Observed"
            row["holder_count"] = sum(1 for balance in state_at(NEWEST).values() if balance)
    now = price_at(SMALL_PAIR_KEY, time_of(NEWEST))
    for row in rows["token_prices"]:
        if row["subject_key"] == token:
            row |= {"as_of_time": naive(time_of(NEWEST)), "price_text": now}
            row["market_capitalization"] = value_of(text_of(supply, DECIMALS), now)
    return rows


def _add_cap_table(rows: dict[str, list[dict[str, Any]]], keys: dict[str, Any]) -> None:
    rows["token_holders"] += [
        {
            **keys,
            "holder_address": holder(number),
            "quantity_raw": raw,
            "reconciliation": reconciliation_of(number, NEWEST),
            "checked_block_number": max(
                (step.block for step in STEPS[number] if step.first == RANGES[1][0] and step.is_observed), default=None
            ),
            "opened_by": "Observed",
        }
        for number, raw in state_at(NEWEST).items()
        if raw
    ]


def _activity(number: int) -> dict[str, Any]:
    kind, direction = _random.choice(
        (("TransferIn", "In"), ("TransferOut", "Out"), ("Self", None), ("Fee", "Out"), ("Mint", "In"))
    )
    token, symbol, decimals = _random.choice(
        (("native", "ETH", 18), (TOKEN_ADDRESS, "SMALL", DECIMALS), (ODD_ADDRESS, None, None))
    )
    first, last = _random.choice(RANGES)
    block = _random.choice((first + 777, _random.randrange(first, last)))
    raw = _random.choice((0, 5, 10**9, _random.randrange(10**20), _random.randrange(10**30)))
    is_known = kind != "Fee" or number % 3 != 0
    return {
        "activity_id": f"act-{number:03d}",
        "activity_type": kind,
        "direction": direction,
        "status": _random.choice(("Finalized", "Finalized", "Confirmed", "Failed")),
        "block_number": block,
        "block_hash": hash_of(block),
        "block_time": naive(time_of(block)),
        "transaction_index": _random.randrange(3),
        "log_index": number,
        "trace_index": None,
        "transaction_hash": f"0x{number * 31:064x}",
        "counterparty_address": {"Fee": None, "Self": WALLET_ADDRESS}.get(kind, holder(_random.randrange(1, 40))),
        "token_address": token,
        "token_id": EXAMPLE_TOKEN_ID if token == TOKEN_ADDRESS else None,
        "token_symbol": symbol,
        "amount_raw": raw if is_known else None,
        "amount": text_of(raw, decimals) if is_known else None,
        "amount_status": "Known" if is_known else "UnknownFee",
    }


ACTIVITIES = [_activity(number) for number in range(1, 91)]
PAIRS = {"native": ETHER_PAIR_KEY, TOKEN_ADDRESS: SMALL_PAIR_KEY}
HELD = {"native": 25 * 10**17, TOKEN_ADDRESS: 1_500_001, ODD_ADDRESS: 12}


def value_of_activity(activity: dict[str, Any]) -> str | None:
    """Return the value of an activity at its time."""
    pair = PAIRS.get(activity["token_address"])
    return value_of(activity["amount"], price_at(pair, time_of(activity["block_number"]))) if pair else None


def _add_wallet(rows: dict[str, list[dict[str, Any]]], tenant_id: str, wallet: int) -> None:
    keys = {"tenant_id": tenant_id, "subject_key": wallet}
    rows["wallet_activities"] += [{**keys, "wallet_id": EXAMPLE_WALLET_ID, **activity} for activity in ACTIVITIES]
    rows["wallet_activity_values"] += [
        {
            **keys,
            "pair_key": PAIRS[activity["token_address"]],
            "price_text": price_at(PAIRS[activity["token_address"]], time_of(activity["block_number"])),
            "value": value_of_activity(activity),
            "value_status": "Priced" if activity["amount_status"] == "Known" else "UnknownAmount",
            **{name: activity[name] for name in ("activity_id", "block_number", "block_time", "transaction_index")},
        }
        for activity in ACTIVITIES
        if activity["token_address"] in PAIRS
    ]
    symbols = {"native": ("ETH", 18), TOKEN_ADDRESS: ("SMALL", DECIMALS), ODD_ADDRESS: (None, None)}
    worth = {
        address: value_of(text_of(raw, symbols[address][1]), price_at(PAIRS[address], time_of(NEWEST)))
        for address, raw in HELD.items()
        if address in PAIRS
    }
    rows["wallet_balances"] += [
        {
            **keys,
            "token_address": address,
            "token_symbol": symbols[address][0],
            "token_id": EXAMPLE_TOKEN_ID if address == TOKEN_ADDRESS else None,
            "quantity_raw": raw,
            "quantity": text_of(raw, symbols[address][1]),
            "reconciliation": "Unchecked" if address == ODD_ADDRESS else "Reconciled",
            "checked_block_number": None if address == ODD_ADDRESS else NEWEST,
            "opened_by": "Observed",
        }
        for address, raw in HELD.items()
    ]
    for before, (first, _) in zip((0, 1), RANGES, strict=True):
        rows["balance_changes"] += [
            {
                **keys,
                "range_from_block": first,
                "token_address": address,
                "token_symbol": symbols[address][0],
                "holder_address": WALLET_ADDRESS,
                "block_number": block,
                "block_time": naive(time_of(block)),
                "movement_raw": 0,
                "balance_raw": raw * (1 + before + turn),
                "balance": text_of(raw * (1 + before + turn), symbols[address][1]),
                "is_moved": turn == 1,
                "is_observed": turn == 0,
                "is_checked": turn == 0,
                "is_adjusted": False,
                "opened_by": "Observed",
            }
            for address, raw in HELD.items()
            for turn, block in enumerate((first - 1, first + 10_000))
        ]
    for row in rows["wallet_totals"]:
        if row["subject_key"] == wallet:
            row |= {
                "as_of_time": naive(time_of(NEWEST)),
                "total_value": sum_of(value for value in worth.values() if value),
                "total_value_status": "Priced",
                "value_complete": False,
                "unpriced": [ODD_ADDRESS],
            }
    days = [time_of(0).replace(hour=0, minute=0, second=0) + timedelta(days=number) for number in range(60)]
    rows["wallet_value_days"] = [row for row in rows.get("wallet_value_days", []) if row["subject_key"] != wallet] + [
        {
            **keys,
            "day": day.date(),
            "value": str(number * 10 + 1),
            "value_status": "Priced",
            "value_complete": False,
            "unpriced": [ODD_ADDRESS],
            "holdings_complete": False,
        }
        for number, (day, end) in enumerate(pairwise(days))
        if any(time_of(first) < end <= time_of(last) for first, last in RANGES)
    ]
