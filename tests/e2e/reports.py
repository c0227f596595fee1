"""The demo's reports: links for embedding, and a comparison of their data with the node.

It uses no browser: the pages draw the answers of these routes, and `tests/browser` tests the pages.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console

from tests.chain.world import Token
from tests.e2e.checks import Chain, Verdict, check_balances, check_holders, decimals_of
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
    return [
        (check_holders(scenario.world, token, cap_table), "figures of the cap table's report"),
        compare_wallet(client, scenario.world, decimals_of(scenario.tokens), (wallet_id, address), console),
    ]


def compare_wallet(
    client: ApiClient, chain: Chain, decimals: Mapping[str, int], wallet: tuple[str, str], console: Console
) -> tuple[Verdict, str]:
    """Make a link to a wallet's report, and check the balances of its page.

    Args:
        client: the tenant's client.
        chain: the chain.
        decimals: of every asset that the wallet can hold.
        wallet: id of the wallet, and its address.
        console: to print on.
    """
    wallet_id, address = wallet
    activity = _summary(client, "wallet-activity", console, walletId=wallet_id)
    positions = {"asOf": activity["asOf"], "current": activity["balances"]}
    return check_balances(chain, decimals, address, positions), "balances of the wallet's report"


def _summary(client: ApiClient, report: str, console: Console, **parameters: str) -> dict[str, Any]:
    """Ask for a link as the customer's server does, and for the report's head as the page does."""
    link = client.get(f"/v1/reports/{report}", **parameters)
    console.print(f"GET  /v1/reports/{report:24} a link that opens for ten minutes")
    token = urlsplit(link["reportUrl"]).fragment.removeprefix("t=")
    with ApiClient(client.base_url, token) as page:
        return page.get(f"/embed/data/{report}/summary")
