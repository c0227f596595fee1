"""Compares the API's answers with the node, number by number.

The truth is the node's `balanceOf`, `totalSupply`, balances and logs; all comparisons are of integers and texts. The
functions do not call the API: they get its answers as arguments.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Protocol

from web3 import Web3

from tests.chain.node import AnvilNode
from tests.chain.world import ZERO_ADDRESS, Token, World

NATIVE = "native"
NATIVE_DECIMALS = 18


class Chain(Protocol):
    """A chain of any family with its balances, as its node gives them."""

    def block_time(self, block: int) -> int:
        """Return the time of a block, Unix seconds."""

    def held(self, asset: str, wallet: str, block: int) -> int:
        """Return a balance at the end of a block, base units. The asset is a lower-case address or `native`."""


@dataclass
class Verdict:
    """Number of comparisons and of agreeing ones; `problems` describes the others."""

    total: int = 0
    agreed: int = 0
    problems: list[str] = field(default_factory=list)

    def count(self, *found: str | None) -> None:
        """Count one comparison with its problems (None: no problem)."""
        wrong = [problem for problem in found if problem is not None]
        self.total += 1
        self.agreed += not wrong
        self.problems.extend(wrong)

    def differs(self, what: str, shown: object, true: object) -> str | None:
        """Return a problem if two values differ, else None."""
        return None if shown == true else f"{what}: the API says {shown!r}, the node {true!r}"

    @property
    def is_agreed(self) -> bool:
        """True if there are no problems."""
        return not self.problems


def decimal_text(raw: int, decimals: int) -> str:
    """Format base units as whole tokens: exact, without exponent or needless zeros.

    >>> decimal_text(-1500, 3), decimal_text(7, 0), decimal_text(1, 4)
    ('-1.5', '7', '0.0001')
    """
    digits = str(abs(raw)).rjust(decimals + 1, "0")
    whole, part = (digits[:-decimals], digits[-decimals:].rstrip("0")) if decimals else (digits, "")
    return ("-" if raw < 0 else "") + whole + (f".{part}" if part else "")


def percentage_text(part: int, whole: int) -> str:
    """Write part / whole in percent with 12 decimals, rounded half to even, no zeros beyond need."""
    scaled, rest = divmod(part * 100 * 10**12, whole)
    if 2 * rest > whole or (2 * rest == whole and scaled % 2 == 1):
        scaled += 1
    return decimal_text(scaled, 12)


def first_block_at(node: AnvilNode, instant: str) -> int:
    """Return the first block with a timestamp at or after an RFC 3339 instant; head + 1 if there is none."""
    seconds = datetime.fromisoformat(instant).timestamp()
    low, high = 0, node.head() + 1
    while low < high:
        middle = (low + high) // 2
        if node.block_time(middle) >= seconds:
            high = middle
        else:
            low = middle + 1
    return low


def check_cap_table(world: World, token: Token, first_block: int, pages: Sequence[dict[str, Any]]) -> Verdict:
    """Check every holder of a cap table, its total and remainder, and that no holder is missing.

    Args:
        world: the chain.
        token: a token with known decimals.
        first_block: first block of the tracking window.
        pages: every page of the answer, in order.
    """
    verdict = Verdict()
    head = pages[0]
    moments = {(page["asOf"]["blockNumber"], page["asOf"]["dataVersion"]) for page in pages}
    if len(moments) != 1:
        verdict.problems.append(f"pages are of different moments: {sorted(moments)}")
    block = head["asOf"]["blockNumber"]
    supply = world.total_supply(token, block)
    rows = [row for page in pages for row in page["data"]]
    balances = world.balances_of(token, [row["wallet"].lower() for row in rows], block)
    decimals = token.decimals or 0
    for position, (row, balance) in enumerate(zip(rows, balances, strict=True), start=1):
        who = f"{token.symbol} {row['wallet']}"
        verdict.count(
            verdict.differs(f"{who} quantityRaw", row["quantityRaw"], str(balance)),
            verdict.differs(f"{who} quantity", row["quantity"], decimal_text(balance, decimals)),
            verdict.differs(f"{who} percentage", row["percentage"], percentage_text(balance, supply)),
            verdict.differs(f"{who} rank", row["rank"], position),
            verdict.differs(f"{who} address", row["wallet"], Web3.to_checksum_address(row["wallet"])),
            f"{who}: holds nothing and is listed" if balance == 0 else None,
        )
    order = [(-int(row["quantityRaw"]), row["wallet"].lower()) for row in rows]
    if order != sorted(set(order)):
        verdict.problems.append(f"{token.symbol}: rows are not in falling order, or one is there twice")
    listed = {row["wallet"].lower() for row in rows}
    seen = _parties(world.transfer_logs(first_block, block, token.address)) - listed - {ZERO_ADDRESS}
    for holder, balance in zip(sorted(seen), world.balances_of(token, sorted(seen), block), strict=True):
        if balance:
            verdict.count(f"{token.symbol} {holder}: holds {balance} and is not listed")
    held = sum(int(row["quantityRaw"]) for row in rows)
    for problem in (
        verdict.differs(f"{token.symbol} totalSupply", head["totalSupply"], decimal_text(supply, decimals)),
        verdict.differs(f"{token.symbol} holderCount", head["holderCount"], len(rows)),
        verdict.differs(
            f"{token.symbol} unattributed", head["unattributed"]["quantity"], decimal_text(supply - held, decimals)
        ),
    ):
        if problem is not None:
            verdict.problems.append(problem)
    return verdict


def check_supplies(world: World, token: Token, tables: Sequence[dict[str, Any]]) -> Verdict:
    """Check that the supplies in cap tables of past blocks equal the node's, unless their status is unconfirmed.

    A change without an event is located by the cycle after the one that saw it. Until then no reading confirms the
    supply in between.
    """
    verdict = Verdict()
    for table in tables:
        block = table["asOf"]["blockNumber"]
        what = f"{token.symbol} at block {block}"
        if table["totalSupplyStatus"] != "Unconfirmed":
            truth = str(world.total_supply(token, block))
            verdict.count(
                verdict.differs(f"{what} totalSupplyRaw", table["totalSupplyRaw"], truth),
                verdict.differs(f"{what} totalSupplyStatus", table["totalSupplyStatus"], "Observed"),
            )
    return verdict


def check_attested(world: World, end: date, pages: Sequence[dict[str, Any]]) -> Verdict:
    """Check that a cap table as of a day is of its last block, and that a reading confirms each row at that block."""
    verdict = Verdict()
    block = first_block_at(world.node, f"{end + timedelta(days=1)}T00:00:00+00:00") - 1
    if problem := verdict.differs(f"block of {end}", pages[0]["asOf"]["blockNumber"], block):
        verdict.problems.append(problem)
    for row in (row for page in pages for row in page["data"]):
        is_confirmed = row["reconciliation"] in ("Reconciled", "Adjusted") and row["checkedBlockNumber"] is not None
        verdict.count(None if is_confirmed else f"{row['wallet']} at {end}: no reading confirms it")
    return verdict


def decimals_of(tokens: Sequence[Token]) -> dict[str, int]:
    """Return the decimals of tokens by address, and of the native asset of an EVM network."""
    return {NATIVE: NATIVE_DECIMALS, **{token.address: token.decimals or 0 for token in tokens}}


def check_balances(chain: Chain, decimals: Mapping[str, int], wallet: str, answer: dict[str, Any]) -> Verdict:
    """Check a wallet's positions, native included: each that is not zero must be there, and no other.

    Args:
        chain: the chain.
        decimals: of every asset of the chain that the wallet can hold.
        wallet: its address, as the chain has it.
        answer: of GET /v1/wallets/{walletId}/balances.
    """
    verdict = Verdict()
    block = answer["asOf"]["blockNumber"]
    positions = {row["token"]["ledgerId"].lower(): row for row in answer["current"]}
    truth = {asset: chain.held(asset, wallet, block) for asset in decimals}
    for asset in sorted({asset for asset, balance in truth.items() if balance} | set(positions)):
        row = positions.get(asset)
        balance = truth.get(asset, 0)
        if row is None:
            verdict.count(f"{wallet}: holds {balance} of {asset}, which is not listed")
        elif balance == 0:
            verdict.count(f"{wallet}: holds nothing of {asset}, which is listed with {row['quantityRaw']}")
        else:
            verdict.count(
                verdict.differs(f"{wallet} {asset} quantityRaw", row["quantityRaw"], str(balance)),
                verdict.differs(f"{wallet} {asset} quantity", row["quantity"], decimal_text(balance, decimals[asset])),
            )
    return verdict


def check_holders(world: World, token: Token, summary: dict[str, Any]) -> Verdict:
    """Check the summary of the cap table's report for a token with its whole history."""
    verdict = Verdict()
    block, decimals = summary["asOf"]["blockNumber"], token.decimals or 0
    parties = sorted(_parties(world.transfer_logs(0, block, token.address)) - {ZERO_ADDRESS})
    held = {who: raw for who, raw in zip(parties, world.balances_of(token, parties, block), strict=True) if raw}
    supply, of = world.total_supply(token, block), token.symbol
    ranked = sorted(held, key=lambda who: (-held[who], who))
    verdict.count(verdict.differs(f"{of} holderCount", summary["holderCount"], len(held)))
    verdict.count(verdict.differs(f"{of} totalSupply", summary["totalSupply"], decimal_text(supply, decimals)))
    rest = decimal_text(supply - sum(held.values()), decimals)
    verdict.count(verdict.differs(f"{of} unattributed", summary["unattributed"]["quantity"], rest))
    shown = [(row["wallet"].lower(), row["quantity"]) for row in summary["largest"]]
    true = [(who, decimal_text(held[who], decimals)) for who in ranked[: len(shown)]]
    verdict.count(verdict.differs(f"{of} largest holders", shown, true))
    return verdict


def check_token_activities(world: World, token: Token, first_block: int, pages: Sequence[dict[str, Any]]) -> Verdict:
    """Check that a token's activities are exactly the node's Transfer logs from `first_block` to the answer's block."""
    verdict = Verdict()
    shown = Counter(
        (
            row["blockNumber"],
            row["logIndex"],
            row["transactionHash"],
            row["type"],
            (row["fromWallet"] or ZERO_ADDRESS).lower(),
            (row["toWallet"] or ZERO_ADDRESS).lower(),
            row["amountRaw"],
            row["amount"],
        )
        for page in pages
        for row in page["data"]
    )
    true: Counter[tuple[Any, ...]] = Counter()
    for log in world.transfer_logs(first_block, pages[0]["asOf"]["blockNumber"], token.address):
        sender, receiver, amount = _movement(log)
        kind = "Mint" if sender == ZERO_ADDRESS else "Burn" if receiver == ZERO_ADDRESS else "Transfer"
        identity = (int(log["blockNumber"], 16), int(log["logIndex"], 16), log["transactionHash"], kind)
        true[*identity, sender, receiver, str(amount), decimal_text(amount, token.decimals or 0)] += 1
    compare_rows(verdict, f"{token.symbol} activities", shown, true)
    return verdict


def check_wallet_activities(
    world: World, tokens: Sequence[Token], wallet: str, first_block: int, pages: Sequence[dict[str, Any]]
) -> Verdict:
    """Check a wallet's activities: its token movements against the node's logs, its native ones against its balance.

    The native activities together must be the change of the native balance, from the block before the window to the
    answer's block.
    """
    verdict = Verdict()
    block = pages[0]["asOf"]["blockNumber"]
    rows = [row for page in pages for row in page["data"]]
    shown = Counter(
        (row["blockNumber"], row["transactionHash"], row["token"]["ledgerId"].lower(), row["type"], row["amountRaw"])
        for row in rows
        if row["token"]["ledgerId"] != NATIVE
    )
    true: Counter[tuple[Any, ...]] = Counter()
    addresses = {token.address for token in tokens}
    for log in world.transfer_logs(first_block, block):
        sender, receiver, amount = _movement(log)
        if wallet in (sender, receiver) and log["address"] in addresses:
            kind = wallet_kind(wallet, sender, receiver)
            true[int(log["blockNumber"], 16), log["transactionHash"], log["address"], kind, str(amount)] += 1
    compare_rows(verdict, f"{wallet} activities", shown, true)
    moved = sum(balance_effect(row) for row in rows if row["token"]["ledgerId"] == NATIVE)
    change = world.native_balance(wallet, block) - world.native_balance(wallet, first_block - 1)
    verdict.count(verdict.differs(f"{wallet} native activities together", moved, change))
    return verdict


def _movement(log: dict[str, Any]) -> tuple[str, str, int]:
    return "0x" + log["topics"][1][-40:], "0x" + log["topics"][2][-40:], int(log["data"], 16)


def _parties(logs: Sequence[dict[str, Any]]) -> set[str]:
    return {party for log in logs for party in _movement(log)[:2]}


def wallet_kind(wallet: str, sender: str, receiver: str) -> str:
    """Return the type of a movement as seen from the wallet, one of its parties."""
    if sender == receiver:
        return "Self"
    if sender == ZERO_ADDRESS:
        return "Mint"
    if receiver == ZERO_ADDRESS:
        return "Burn"
    return "TransferOut" if sender == wallet else "TransferIn"


def balance_effect(row: dict[str, Any]) -> int:
    """Return an activity's change of the balance in base units; a failed transaction only changes it by its fee."""
    if row["status"] == "Failed" and row["type"] != "Fee":
        return 0
    return {"In": 1, "Out": -1, None: 0}[row["direction"]] * int(row["amountRaw"])


def compare_rows(verdict: Verdict, what: str, shown: Counter[tuple[Any, ...]], true: Counter[tuple[Any, ...]]) -> None:
    """Count the common rows; rows on one side only are problems."""
    missing, unexpected = true - shown, shown - true
    verdict.total += true.total() + unexpected.total()
    verdict.agreed += (true & shown).total()
    for name, rows in (("missing", missing), ("not on the node", unexpected)):
        if rows:
            verdict.problems.append(f"{what}: {rows.total()} {name}, such as {next(iter(rows))}")
