"""The demo on an EVM network: tokens, price feeds, month-ends and reports, each compared with the node."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.chain.node import AnvilNode
from tests.e2e import prices, reports
from tests.e2e.checks import (
    Verdict,
    check_attested,
    check_balances,
    check_cap_table,
    check_supplies,
    check_token_activities,
    check_wallet_activities,
    decimals_of,
    first_block_at,
)
from tests.e2e.scenario import WALLETS, Scenario
from tests.e2e.story import Running, Story, Subject, agreed, print_balances, table

_PAGE = 200
_ACTIVITY_PAGE = 1000
_PAST_SUPPLIES = 25


class EvmStory(Story):
    """Tokens of different kinds and wallets on an EVM node, with a year of transfers behind them.

    Args:
        started: stops the node.
        data_dir: folder for the definitions of networks.
        transfers: random token transactions.
        console: to print on.
    """

    network = "local"
    scenario: Scenario

    def __init__(self, started: ExitStack, data_dir: Path, transfers: int, console: Console) -> None:
        console.print("Starting a node, and making a year of transfers on it.")
        node = started.enter_context(AnvilNode(genesis_time=Scenario.genesis_time(transfers)))
        self.url = node.url
        self.scenario = Scenario(node, transfers)
        self.scenario.first_half()
        made = len(self.scenario.world.transfer_logs(0, node.head()))
        console.print(f"A real EVM node at {node.url}, block {node.head()}.")
        console.print(
            f"{len(self.scenario.tokens)} tokens, {WALLETS} wallets, {made:,} transfers before anybody tracks."
        )
        self.settings = {"LEDGERMART_NETWORKS": str(prices.networks_file(data_dir, self.scenario))}

    def set_up(self, running: Running, subjects: Sequence[Subject]) -> list[str]:
        tokens = {str(subject.token.symbol): subject.path for subject in subjects if subject.token is not None}
        self._pricing = prices.set_up(running.client, self.scenario, tokens, running.console)
        return list(self._pricing.operations)

    def with_history(self, subjects: Sequence[Subject]) -> list[Subject]:
        named = {subject.label: subject for subject in subjects}
        return [named["GOLD"], named["Wallet 1"]]

    def chapters(
        self, running: Running, subjects: Sequence[Subject], last_block: int
    ) -> Iterator[tuple[str, Callable[[], bool]]]:
        gold, wallet = self.with_history(subjects)
        yield "Every number, compared with the node", partial(self._compare, running, subjects, last_block)
        yield "The ends of twelve months, attested", partial(self._compare_month_ends, running, gold)
        yield "Prices and values", partial(self._compare_values, running, gold, wallet)
        yield "Reports", partial(self._compare_reports, running, gold, wallet)

    def _compare(self, running: Running, subjects: Sequence[Subject], last_block: int) -> bool:
        world, client, console = self.scenario.world, running.client, running.console
        whole = self.with_history(subjects)
        verdicts: list[tuple[Verdict, str]] = []

        def note(verdict: Verdict, text: str) -> None:
            verdicts.append((verdict, text.format(verdict=verdict)))

        for subject in subjects:
            first_block = 1 if subject in whole else first_block_at(world.node, subject.opened)
            activities = list(client.pages(f"{subject.path}/activities", limit=_ACTIVITY_PAGE))
            if subject.token is not None:
                pages = list(client.pages(f"{subject.path}/cap-table", limit=_PAGE))
                if subject.token.symbol == "GOLD":
                    _print_cap_table(pages[0], console)
                    _print_activities(activities[0], console)
                verdict = check_cap_table(world, subject.token, first_block, pages)
                note(verdict, f"{subject.label:9} {{verdict.agreed}} of {{verdict.total}} holders agree")
                if subject in whole:
                    verdict = Verdict()
                    verdict.count(verdict.differs("holdersStatus", pages[0]["holdersStatus"], "Complete"))
                    note(verdict, f"{subject.label:9} has all its holders, with the history from its creation")
                if subject.token.symbol == "TICKET":
                    blocks = range(first_block, pages[0]["asOf"]["blockNumber"] + 1)
                    asked = sorted(world.random.sample(blocks, min(_PAST_SUPPLIES, len(blocks))))
                    past = [client.get(f"{subject.path}/cap-table", asOf=f"block:{block}", limit=1) for block in asked]
                    verdict = check_supplies(world, subject.token, past)
                    note(verdict, f"{subject.label:9} {{verdict.agreed}} of {{verdict.total}} past supplies agree")
                verdict = check_token_activities(world, subject.token, first_block, activities)
                note(verdict, f"{subject.label:9} {{verdict.agreed}} of {{verdict.total}} activities agree")
            else:
                answer = client.get(f"{subject.path}/balances")
                if subject.label == "Wallet 1":
                    print_balances(answer, console)
                verdict = check_balances(world, decimals_of(self.scenario.tokens), subject.address, answer)
                note(verdict, f"{subject.label:9} {{verdict.agreed}} of {{verdict.total}} balances agree")
                verdict = check_wallet_activities(world, self.scenario.tokens, subject.address, first_block, activities)
                note(verdict, f"{subject.label:9} {{verdict.agreed}} of {{verdict.total}} movements agree")
        truth = f"balanceOf, eth_getBalance, totalSupply and the logs of the node, block {last_block}"
        return running.print_verdicts(truth, verdicts)

    def _compare_month_ends(self, running: Running, gold: Subject) -> bool:
        """Have the ends of past months attested, and check their cap tables."""
        assert gold.token is not None
        client, path, ends = running.client, f"{gold.path}/attestations", self.scenario.month_ends
        asked = [f"{path}/{client.post(path, {'asOf': str(end)})['id']}" for end in ends]
        running.console.print(f"POST .../attestations                    of GOLD, {ends[0]} to {ends[-1]}")
        running.wait_for(asked, "month-ends attested")
        verdicts = []
        for end in ends:
            pages = list(client.pages(f"{gold.path}/cap-table", asOf=str(end), limit=_PAGE))
            verdict = check_cap_table(self.scenario.world, gold.token, 1, pages)
            verdicts.append((verdict, f"{end} {verdict.agreed} of {verdict.total} rows agree"))
            confirmed = check_attested(self.scenario.world, end, pages)
            verdicts.append((confirmed, f"{end} {confirmed.agreed} of {confirmed.total} rows are confirmed"))
        return running.print_verdicts("balanceOf and totalSupply of the node at the last block of each month", verdicts)

    def _compare_values(self, running: Running, gold: Subject, wallet: Subject) -> bool:
        assert gold.token is not None
        verdicts = prices.compare(
            running.client,
            self.scenario,
            self._pricing,
            (gold.path, gold.token),
            (wallet.path, wallet.address),
            running.console,
        )
        truth = "the rounds of the feeds, the manual prices, balanceOf and totalSupply, in exact decimals"
        return running.print_verdicts(truth, agreed(verdicts))

    def _compare_reports(self, running: Running, gold: Subject, wallet: Subject) -> bool:
        assert gold.token is not None
        verdicts = reports.compare(
            running.client, self.scenario, (gold.id, gold.token), (wallet.id, wallet.address), running.console
        )
        return running.print_verdicts(
            "balanceOf, eth_getBalance, totalSupply and the logs of the node", agreed(verdicts)
        )


def _print_cap_table(page: dict[str, Any], console: Console) -> None:
    shown = table(f"Cap table of GOLD at block {page['asOf']['blockNumber']}", "Wallet", "Quantity >", "Percent >")
    for row in page["data"][:8]:
        shown.add_row(row["wallet"], row["quantity"], row["percentage"])
    rest = page["unattributed"]
    shown.add_row("held by nobody seen", rest["quantity"], rest["percentage"])
    console.print(shown)
    console.print(f"total supply {page['totalSupply']}, {page['holderCount']} holders: {page['holdersStatus']}")


def _print_activities(page: dict[str, Any], console: Console) -> None:
    shown = table("Newest activities of GOLD", "Date", "Type", "From", "To", "Amount >", "Status")
    for row in page["data"][:5]:
        parties = (f"{row[name][:8]}.." if row[name] else "-" for name in ("fromWallet", "toWallet"))
        shown.add_row(row["date"], row["type"], *parties, row["amount"], row["status"])
    console.print(shown)
