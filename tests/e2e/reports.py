"""The demo's reports: links for embedding, and a comparison of their data with the node.

It uses no browser: the pages draw the answers of these routes, and `tests/browser` tests the pages.
"""

from typing import Any
from urllib.parse import urlsplit

from rich.console import Console

from tests.chain.world import Token
from tests.e2e.checks import Verdict, check_balances, check_holders
from tests.e2e.client import ApiClient
from tests.e2e.scenario import Scenario


def compare(
    client: ApiClient, scenario: Scenario, gold: tuple[str, Token], wallet: tuple[str, str], console: Console
) -> list[tuple[Verdict, str]]:
    """Make a link to each report, and check the data of its page.

    Args:
        client: the tenant's client.
        scenario: the chain.
        gold: id of a token with its whole history, and the token.
        wallet: id of a wallet, and its address.
        console: to print on.

    Returns:
        Each verdict with its title.
    """
    (token_id, token), (wallet_id, address) = gold, wallet
    cap_table = _summary(client, "cap-table", console, tokenId=token_id)
    activity = _summary(client, "wallet-activity", console, walletId=wallet_id)
    positions = {"asOf": activity["asOf"], "current": activity["balances"]}
    return [
        (check_holders(scenario.world, token, cap_table), "figures of the cap table's report"),
        (check_balances(scenario.world, scenario.tokens, address, positions), "balances of the wallet's report"),
    ]


def _summary(client: ApiClient, report: str, console: Console, **parameters: str) -> dict[str, Any]:
    """Ask for a link as the customer's server does, and for the report's head as the page does."""
    link = client.get(f"/v1/reports/{report}", **parameters)
    console.print(f"GET  /v1/reports/{report:24} a link that opens for ten minutes")
    token = urlsplit(link["reportUrl"]).fragment.removeprefix("t=")
    with ApiClient(client.base_url, token) as page:
        return page.get(f"/embed/data/{report}/summary")
