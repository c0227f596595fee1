"""The demo on a chain of outputs: wallets of every form of address, each balance compared with the node's own scan."""

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.chain.utxo_world import KINDS
from tests.e2e import prices, reports
from tests.e2e.checks import NATIVE, Verdict, balance_effect, check_balances, compare_rows, decimal_text
from tests.e2e.client import ApiError
from tests.e2e.price_checks import Quote, Timeline
from tests.e2e.story import LEDGER, TENANT, DemoError, Running, Story, Subject, agreed, print_balances, table
from tests.e2e.utxo_scenario import Replacement, UtxoChain, UtxoScenario

_SYMBOL = "LTC"
_DECIMALS = 8
_ACTIVITY_PAGE = 1000
_FIRST_PRICE = Decimal("84.25")
_PRICE_STEP = Decimal("1.35")
_PRICE_DAYS = timedelta(days=3)
_MAX_AGE = timedelta(days=5)


class UtxoStory(Story):
    """A wallet for each form of address on a litecoind node in regtest, with weeks of payments behind them.

    Args:
        started: stops the node.
        data_dir: folder of the service.
        transfers: random payments.
        console: to print on.
    """

    network = "local-utxo"
    scenario: UtxoScenario

    def __init__(self, started: ExitStack, data_dir: Path, transfers: int, console: Console) -> None:
        console.print("Starting a node, and making weeks of payments on it.")
        node = started.enter_context(UtxoScenario.new_node(transfers))
        self.url = node.url
        self.settings = {}
        self.scenario = UtxoScenario(node, transfers)
        self.scenario.first_half()
        self._data_dir = data_dir
        version = node.rpc("getnetworkinfo")["subversion"].strip("/")
        console.print(f"A real node, {version}, on port {node.port}, block {node.head()}.")
        console.print(f"{len(KINDS)} wallets, {self.scenario.sent:,} payments before anybody tracks.")

    def set_up(self, running: Running, subjects: Sequence[Subject]) -> list[str]:
        client, console = running.client, running.console
        for subject, kind in zip(subjects, KINDS, strict=True):
            console.print(f"                                         {subject.label} is {kind}: {subject.address}")
        try:
            client.post("/v1/tokens", {"ledger": LEDGER, "symbol": _SYMBOL, "ledgerId": NATIVE})
        except ApiError as error:
            if "native-asset" not in {reason["code"] for reason in error.problem.get("errors", ())}:
                raise
            console.print(f"POST /v1/tokens of the native asset      {error.status} native-asset")
        else:
            raise DemoError("the API accepted the native asset as a token")
        for symbol, name, item_class in (("USD", "US dollar", "Currency"), (_SYMBOL, "Litecoin", "Cryptocurrency")):
            client.post("/v1/priced-items", {"name": name, "symbol": symbol, "class": item_class})
        pair = {"pricedAs": _SYMBOL, "pricedIn": "USD", "priceType": "Market"}
        source = prices.enter_prices(client, "Price desk", pair, self._quotes)
        body = {"pricedAs": _SYMBOL, "priceType": "Market", "priceSources": [source], "maxAge": f"P{_MAX_AGE.days}D"}
        client.post("/v2/pairs", body)
        console.print(f"POST /v1/priced-items, /v2/pairs         {_SYMBOL}/USD by {len(self._quotes)} manual prices,")
        console.print("                                         without a link, as it is the native asset")
        return []

    def with_history(self, subjects: Sequence[Subject]) -> list[Subject]:
        return list(subjects)

    def chapters(
        self, running: Running, subjects: Sequence[Subject], last_block: int
    ) -> Iterator[tuple[str, Callable[[], bool]]]:
        yield "A reorganisation replaces a payment", partial(self._reorganise, running, subjects)
        yield "Every movement, compared with the node", partial(self._compare_movements, running, subjects)
        yield "Prices and values", partial(self._compare_values, running, subjects[0])
        yield "Reports", partial(self._compare_reports, running, subjects)
        yield "Every balance, compared with the node's own scan", partial(self._compare_balances, running, subjects)

    @cached_property
    def _quotes(self) -> list[Quote]:
        """Manual prices from the first payments until now."""
        start, now = self.scenario.started_at, datetime.now(UTC)
        number = (now - start) // _PRICE_DAYS + 1
        return [Quote(start + place * _PRICE_DAYS, _FIRST_PRICE + place * _PRICE_STEP) for place in range(number)]

    @cached_property
    def _chain(self) -> UtxoChain:
        """The chain after the reorganisation; no block follows until all numbers are compared."""
        return UtxoChain(self.scenario.node, self.scenario.tracked_wallets)

    def _reorganise(self, running: Running, subjects: Sequence[Subject]) -> bool:
        """Have the API show a payment, replace its block, and wait until the API shows the payment that replaces it."""
        _, payer, first, second, _ = subjects
        # Otherwise a short run ends before the windows begin.
        self.scenario.pass_median()
        replacement = Replacement(self.scenario, payer.address, (first.address, second.address))
        lost, block = replacement.pay()
        running.wait_until(lambda: lost in self._shown(running, first), f"the payment in block {block}")
        running.console.print(f"{payer.label} pays {first.label} in block {block}, and the API shows it.")
        kept, head = replacement.replace()
        running.wait_until(
            lambda: all(running.shown_block(subject) >= head for subject in subjects), f"the blocks {block} to {head}"
        )
        running.console.print(
            f"The node replaces block {block}: {payer.label} pays {second.label} with the same output."
        )
        verdict = Verdict()
        for subject, txid, is_there in ((first, lost, False), (second, kept, True), (payer, lost, False)):
            shown = txid in self._shown(running, subject)
            verdict.count(verdict.differs(f"{subject.label}: {txid} is shown", shown, is_there))
        return running.print_verdicts("the node's new blocks", agreed([(verdict, "payments of both blocks")]))

    def _shown(self, running: Running, subject: Subject) -> set[str]:
        page = running.client.get(f"{subject.path}/activities", limit=_ACTIVITY_PAGE)
        return {row["transactionHash"] for row in page["data"]}

    def _compare_movements(self, running: Running, subjects: Sequence[Subject]) -> bool:
        """Compare the activities of each transaction with its inputs and outputs on the node."""
        verdicts = []
        for subject in subjects:
            pages = list(running.client.pages(f"{subject.path}/activities", limit=_ACTIVITY_PAGE))
            if subject is subjects[0]:
                _print_activities(pages[0], running.console)
            shown = Counter(
                (
                    row["blockNumber"],
                    row["transactionHash"],
                    balance_effect(row),
                    None if row["feeRaw"] is None else int(row["feeRaw"]),
                )
                for page in pages
                for row in page["data"]
            )
            verdict = Verdict()
            compare_rows(verdict, f"{subject.label} transactions", shown, Counter(self._chain.moved(subject.address)))
            verdicts.append((verdict, f"{subject.label:9} {verdict.agreed} of {verdict.total} transactions agree"))
        truth = f"inputs and outputs of all blocks of the node, up to block {self._chain.oracle.head}"
        return running.print_verdicts(truth, verdicts)

    def _compare_values(self, running: Running, wallet: Subject) -> bool:
        verdicts = prices.compare_wallet(
            running.client,
            self._chain,
            (wallet.path, wallet.address),
            {NATIVE: (_SYMBOL, _DECIMALS)},
            {NATIVE: (_DECIMALS, Timeline(self._quotes, _MAX_AGE))},
            ({"from": f"{self.scenario.started_at:%Y-%m-%dT%H:%M:%SZ}"}, None),
            running.console,
        )
        return running.print_verdicts("the manual prices and the node's blocks, in exact decimals", agreed(verdicts))

    def _compare_reports(self, running: Running, subjects: Sequence[Subject]) -> bool:
        verdicts = []
        for subject in subjects:
            wallet = subject.id, subject.address
            verdict, _ = reports.compare_wallet(
                running.client, self._chain, {NATIVE: _DECIMALS}, wallet, running.console
            )
            verdicts.append((verdict, f"balances of {subject.label}'s report"))
        return running.print_verdicts("scantxoutset of the node", agreed(verdicts))

    def _compare_balances(self, running: Running, subjects: Sequence[Subject]) -> bool:
        """Compare the balances of the API and of an export with the node's scan of its unspent outputs."""
        exported = self._exported(running)
        compared = table("Balances of all wallets", "Wallet", "Form", "API >", "Export >", "scantxoutset >")
        verdicts = []
        for subject, kind in zip(subjects, KINDS, strict=True):
            answer = running.client.get(f"{subject.path}/balances")
            if subject is subjects[0]:
                print_balances(answer, running.console)
            true = self._chain.scanned[subject.address]
            verdict = check_balances(self._chain, {NATIVE: _DECIMALS}, subject.address, answer)
            head = answer["asOf"]["blockNumber"]
            verdict.count(verdict.differs(f"{subject.label}'s newest block", head, self._chain.oracle.head))
            verdict.count(verdict.differs(f"{subject.label} in the export", exported.get(subject.id), str(true)))
            shown = [row["quantity"] for row in answer["current"]]
            written = decimal_text(int(exported.get(subject.id, 0)), _DECIMALS)
            compared.add_row(subject.label, kind, ", ".join(shown), written, decimal_text(true, _DECIMALS))
            verdicts.append((verdict, f"{subject.label:9} {verdict.agreed} of {verdict.total} figures agree"))
        running.console.print(compared)
        return running.print_verdicts(f"scantxoutset of the node, block {self._chain.oracle.head}", verdicts)

    def _exported(self, running: Running) -> dict[str, str]:
        """Export the balances as CSV, and return the base units of each wallet by its id."""
        folder = self._data_dir / "export"
        marts = ("wallet_balances", "wallets")
        chosen = [word for mart in marts for word in ("--mart", mart)]
        running.service.run("export", "--format", "csv", "--tenant", TENANT, *chosen, "--out", str(folder))
        running.console.print(f"ledgermart export --format csv           {', '.join(marts)}")
        balances, wallets = (list(csv.DictReader((folder / f"{mart}.csv").open(newline=""))) for mart in marts)
        ids = {row["subject_key"]: row["wallet_id"] for row in wallets}
        return {ids[row["subject_key"]]: row["quantity_raw"] for row in balances}


def _print_activities(page: dict[str, Any], console: Console) -> None:
    shown = table(
        "Newest activities of Wallet 1", "Date", "Type", "Amount >", "Fee >", "Counterparties >", "Transaction"
    )
    for row in page["data"][:6]:
        fee = row["fee"] or "-"
        shown.add_row(
            row["date"],
            row["type"],
            row["amount"],
            fee,
            str(row["counterpartyCount"]),
            f"{row['transactionHash'][:12]}..",
        )
    console.print(shown)
