"""The demo: `python -m tests.e2e.demo [--once]`. A chain, the service, and every number compared.

It starts a node and the service, and uses the API like a user's program. It requests the history, prices it, and
compares the API's answers with the node. Without `--once` it then continues with new transfers every second until it is
interrupted.
"""

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from tests.chain.node import AnvilNode, NodeError
from tests.chain.process import adopt_orphans, stop_descendants
from tests.chain.world import Token
from tests.e2e import prices, reports
from tests.e2e.checks import (
    Verdict,
    check_attested,
    check_balances,
    check_cap_table,
    check_supplies,
    check_token_activities,
    check_wallet_activities,
    first_block_at,
)
from tests.e2e.client import ApiClient, ApiError
from tests.e2e.scenario import WALLETS, Scenario
from tests.e2e.service import Service, ServiceError

_DATA_DIR = Path(__file__).parents[2] / "data" / "demo"
_LEDGER = "demo-chain"
_PER_BLOCK = 50
_CYCLE_SECONDS = 5
_PAGE = 200
_ACTIVITY_PAGE = 1000
_MORE_TIME = "On a slow machine, wait longer: make demo LIMIT=900"
_PAST_SUPPLIES = 25
# Width if the output is not a terminal, so that tables have room for whole numbers.
_FILE_WIDTH = 120


class DemoError(Exception):
    """The demo cannot continue; the message says why."""


@dataclass(frozen=True)
class Subject:
    """A tracked token or wallet: its path in the API, its address, and the first block of its window."""

    path: str
    label: str
    address: str
    first_block: int
    token: Token | None


def main() -> int:
    """Run the demo; 0 all numbers agree (or stopped by a signal while going on), 1 some differ, 2 it could not run."""
    options = _options()
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    # Both raise KeyboardInterrupt, so that the `with` blocks stop all child processes. SIGINT needs a handler, too: a
    # shell starts background jobs with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    adopt_orphans()
    try:
        with _only_one(options.data_dir):
            return _run(options, console)
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130 if options.once else 0
    except (DemoError, NodeError, ServiceError, ApiError) as error:
        console.print(f"\n[red]The demo could not go on:[/] {escape(str(error))}")
        return 2
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        for command in stop_descendants():
            console.print(f"[yellow]ended what was left of:[/] {escape(command)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.demo", description="Ledgermart on a local EVM node.")
    parser.add_argument("--once", action="store_true", help="check every number, stop, and exit 1 when any differs")
    parser.add_argument("--transfers", type=int, default=4000, help="random token transactions (default 4000)")
    parser.add_argument("--data-dir", type=Path, default=_DATA_DIR, help="folder to use; it is emptied at the start")
    parser.add_argument("--limit", type=int, default=300, help="seconds to wait while nothing makes progress")
    options = parser.parse_args()
    options.data_dir = options.data_dir.absolute()
    return options


def _interrupt(number: int, frame: FrameType | None) -> None:
    # Past Python's buffers, which the interrupted code may be writing to.
    os.write(sys.stdout.fileno(), b"\nStopping what was started ...\n")
    raise KeyboardInterrupt


@contextlib.contextmanager
def _only_one(data_dir: Path) -> Iterator[None]:
    """Lock the folder, so that a second demo cannot empty it."""
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    with data_dir.with_name(f"{data_dir.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(f"another demo is running on {data_dir}; stop it, or give --data-dir") from None
        yield


def _run(options: argparse.Namespace, console: Console) -> int:
    if options.data_dir.exists():
        shutil.rmtree(options.data_dir)
    with contextlib.ExitStack() as started:
        console.rule("A chain")
        console.print("Starting a node, and making a year of transfers on it.")
        node = started.enter_context(AnvilNode(genesis_time=Scenario.genesis_time(options.transfers)))
        scenario = Scenario(node, options.transfers)
        scenario.first_half()
        made = len(scenario.world.transfer_logs(0, node.head()))
        console.print(f"A real EVM node at {node.url}, block {node.head()}.")
        console.print(f"{len(scenario.tokens)} tokens, {WALLETS} wallets, {made:,} transfers before anybody tracks.")

        console.rule("The service")
        extra = {
            "LEDGERMART_CYCLE_SECONDS": str(_CYCLE_SECONDS),
            "LEDGERMART_PRICE_POLL_SECONDS": str(_CYCLE_SECONDS),
            "LEDGERMART_NETWORKS": str(prices.networks_file(options.data_dir, scenario)),
        }
        service = started.enter_context(Service(options.data_dir, node.url, extra))
        console.print("Initialising the stores: some 15 s, more on a busy machine.")
        key = service.init("demo")
        console.print("Starting API, worker and Dagster.")
        service.start(options.limit)
        console.print(f"Up: the API at {service.api_url}, Dagster's runs at {service.dagster_url}/runs.")

        console.rule("Set up through the API")
        client = started.enter_context(ApiClient(service.api_url, key))
        subjects = _set_up(client, scenario, console)
        tokens = {str(subject.token.symbol): subject.path for subject in subjects if subject.token is not None}
        pricing = prices.set_up(client, scenario, tokens, console)
        gold, wallet = _chosen(subjects)
        asked = [
            f"{subject.path}/history-requests/"
            + str(client.post(f"{subject.path}/history-requests", {"from": "creation", "to": "now"})["id"])
            for subject in (gold, wallet)
        ]
        console.print("POST .../history-requests                of GOLD and Wallet 1, from creation on")

        console.rule("What happens next is collected")
        last_block = _collect(client, scenario, service, subjects, console, options.limit)
        _wait_for_past(
            client, [*asked, *pricing.operations], "requests for the past done", service, console, options.limit
        )

        console.rule("Every number, compared with the node")
        is_agreed = _compare(client, scenario, subjects, {gold.path, wallet.path}, last_block, console)
        console.rule("The ends of twelve months, attested")
        is_agreed &= _compare_month_ends(client, scenario, gold, service, console, options.limit)
        console.rule("Prices and values")
        is_agreed &= _compare_values(client, scenario, pricing, gold, wallet, console)
        console.rule("Reports")
        is_agreed &= _compare_reports(client, scenario, gold, wallet, console)
        report_link = _link_to_reports(service, key)
        console.print("ledgermart report                        a link to the list of all reports")
        if options.once:
            return 0 if is_agreed else 1
        _show_where(service, key, report_link, subjects, console)
        _go_on(client, scenario, service, subjects, console)
    raise AssertionError("unreachable: going on ends by a signal or an error")


def _link_to_reports(service: Service, key: str) -> str:
    """Have the console command make a link to the list of all reports."""
    made = json.loads(service.run("report", "--json", variables={"LEDGERMART_API_KEY": key}))
    assert "/embed/index/" in made["reportUrl"]
    return str(made["reportUrl"])


def _set_up(client: ApiClient, scenario: Scenario, console: Console) -> list[Subject]:
    """Go through the spec's sequences: networks, a ledger, tokens and wallets, tracking, lists."""
    networks = [network["name"] for page in client.pages("/v1/networks") for network in page["data"]]
    console.print(f"GET  /v1/networks                        {', '.join(networks)}")
    client.put("/v1/networks/local/ledgers", {"name": _LEDGER, "displayName": "Demo chain"})
    ledgers = [ledger["name"] for page in client.pages("/v1/networks/ledgers") for ledger in page["data"]]
    console.print(f"PUT  /v1/networks/local/ledgers          {', '.join(ledgers)}")
    created: list[tuple[str, str, str, Token | None]] = []
    for token in scenario.tokens:
        body = {"ledger": _LEDGER, "symbol": token.symbol, "ledgerId": token.address, "name": f"Demo {token.symbol}"}
        answer = client.post("/v1/tokens", body)
        created.append((f"/v1/tokens/{answer['id']}", str(token.symbol), token.address, token))
    for index, wallet in enumerate(scenario.tracked_wallets, start=1):
        body = {"ledger": _LEDGER, "ledgerId": wallet, "name": f"Wallet {index}", "externalId": f"customer-{index}"}
        answer = client.post("/v1/wallets", body)
        created.append((f"/v1/wallets/{answer['id']}", f"Wallet {index}", wallet, None))
    tracked = [
        (*subject, client.put(f"{subject[0]}/tracking", {"trackingStatus": "enabled"})["windows"][-1]["from"])
        for subject in created
    ]
    # A window opens in a whole second; its first block is known once one exists at or after that second.
    scenario.step(_PER_BLOCK)
    subjects = [
        Subject(path, label, address, first_block_at(scenario.world.node, opened), token)
        for path, label, address, token, opened in tracked
    ]
    for path in ("/v1/tokens", "/v1/wallets"):
        rows = [row for page in client.pages(path) for row in page["data"]]
        shown = ", ".join(f"{row['name']} {row['trackingStatus']}" for row in rows)
        console.print(f"POST, PUT .../tracking, GET {path:12} {shown}")
    return subjects


def _chosen(subjects: Sequence[Subject]) -> tuple[Subject, Subject]:
    """GOLD and Wallet 1, of which the whole past is shown."""
    named = {subject.label: subject for subject in subjects}
    return named["GOLD"], named["Wallet 1"]


def _collect(
    client: ApiClient,
    scenario: Scenario,
    service: Service,
    subjects: Sequence[Subject],
    console: Console,
    limit_seconds: int,
) -> int:
    """Make the second half, a block a second, and wait until the API shows all of it.

    Returns:
        The last block with transfers.

    Raises:
        DemoError: the API shows nothing new for `limit` seconds; the message has the block of each subject.
    """
    last_block = scenario.world.node.head()
    known: dict[str, int] = {}
    deadline = 0.0
    total = 2 * scenario.half
    with _Progress(console) as progress:
        while True:
            begun = time.monotonic()
            left = total - scenario.sent
            if left > 0:
                last_block = scenario.step(min(_PER_BLOCK, left))
            service.check_running()
            shown = {subject.label: _shown_block(client, subject) for subject in subjects}
            if left > 0 or shown != known:
                known, deadline = shown, time.monotonic() + limit_seconds
            reached = min(shown.values())
            progress.show(scenario.sent, total, reached, last_block)
            if left <= 0 and reached >= last_block:
                return last_block
            if left <= 0 and time.monotonic() > deadline:
                behind = ", ".join(f"{label} {block}" for label, block in shown.items() if block < last_block)
                raise DemoError(
                    f"for {limit_seconds} s the API has shown nothing new, and not yet block {last_block}. Behind "
                    f"(-1: nothing collected): {behind}. {_MORE_TIME}\n{service.log_tail()}"
                )
            time.sleep(max(0.0, begun + 1 - time.monotonic()))


def _wait_for_past(
    client: ApiClient, operations: Sequence[str], done: str, service: Service, console: Console, limit_seconds: int
) -> None:
    """Wait for history requests, attestations and price discoveries while they make progress.

    Args:
        client: the tenant's client.
        operations: paths of the operations.
        done: text after the number of completed operations.
        service: the service with the output for errors.
        console: shows the number of completed operations.
        limit_seconds: longest wait without progress.

    Raises:
        DemoError: an operation failed, or there was no progress for the limit.
    """
    with _Progress(console) as progress:
        left = prices.wait_for(
            client, operations, limit_seconds, lambda number, of: progress.tell(f"{number} of {of} {done}")
        )
    if left:
        told = "; ".join(f"{answer['id']} is {answer['status']}: {answer['error']}" for answer in left)
        number = len(operations) - len(left)
        raise DemoError(
            f"{number} of {len(operations)} {done}, and one failed or nothing has changed for {limit_seconds} s: "
            f"{told}. {_MORE_TIME}\n{service.log_tail()}"
        )


def _shown_block(client: ApiClient, subject: Subject) -> int:
    """Return the block of the API's answer about a subject; -1 before any collection."""
    if subject.token is not None:
        answer = client.get(f"{subject.path}/cap-table", limit=1)
    else:
        answer = client.get(f"{subject.path}/balances")
    number = answer["asOf"]["blockNumber"]
    return -1 if number is None else int(number)


class _Progress:
    """One line that stays in its place in a terminal; elsewhere a line when it changed, every few seconds at most."""

    _QUIET_SECONDS = 5.0

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal else None
        self._line = ""
        self._printed = ("", 0.0)

    def __enter__(self) -> "_Progress":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        elif self._line != self._printed[0]:
            self._console.print(self._line)

    def show(self, sent: int, total: int | None, reached: int, head: int) -> None:
        """Show the number of sent transactions (of a total, if given), and the blocks of the API and the chain."""
        amount = f"{sent:,}" if total is None else f"{sent:,} of {total:,}"
        api = "nothing yet, the worker prepares itself" if reached < 0 else f"block {reached:,} of {head:,}"
        self.tell(f"token transactions sent: {amount}    the API shows: {api}")

    def tell(self, line: str) -> None:
        """Replace the line that is shown."""
        self._line = line
        if self._live is not None:
            self._live.update(line)
        elif line != self._printed[0] and time.monotonic() - self._printed[1] >= self._QUIET_SECONDS:
            self._console.print(line)
            self._printed = (line, time.monotonic())


def _compare(
    client: ApiClient,
    scenario: Scenario,
    subjects: Sequence[Subject],
    whole: set[str],
    last_block: int,
    console: Console,
) -> bool:
    """Read all data through the API, check it, and print a summary; return True if every number agrees.

    Args:
        client: the tenant's client.
        scenario: the chain.
        subjects: the tracked tokens and wallets.
        whole: paths of the subjects with a requested whole history.
        last_block: the block that must be shown.
        console: to print on.
    """
    world = scenario.world
    verdicts: list[tuple[Verdict, str]] = []

    def note(verdict: Verdict, text: str) -> None:
        verdicts.append((verdict, text.format(verdict=verdict)))

    for subject in subjects:
        first_block = 1 if subject.path in whole else subject.first_block
        activities = list(client.pages(f"{subject.path}/activities", limit=_ACTIVITY_PAGE))
        if subject.token is not None:
            pages = list(client.pages(f"{subject.path}/cap-table", limit=_PAGE))
            if subject.token.symbol == "GOLD":
                _print_cap_table(pages[0], console)
                _print_activities(activities[0], console)
            verdict = check_cap_table(world, subject.token, first_block, pages)
            note(verdict, f"{subject.label:9} {{verdict.agreed}} of {{verdict.total}} holders agree")
            if subject.path in whole:
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
                _print_balances(answer, console)
            verdict = check_balances(world, scenario.tokens, subject.address, answer)
            note(verdict, f"{subject.label:9} {{verdict.agreed}} of {{verdict.total}} balances agree")
            verdict = check_wallet_activities(world, scenario.tokens, subject.address, first_block, activities)
            note(verdict, f"{subject.label:9} {{verdict.agreed}} of {{verdict.total}} movements agree")
    console.print(f"\nAgainst balanceOf, eth_getBalance, totalSupply and the logs of the node, block {last_block}:")
    return _tell(verdicts, console)


def _compare_month_ends(
    client: ApiClient, scenario: Scenario, gold: Subject, service: Service, console: Console, limit_seconds: int
) -> bool:
    """Have the ends of past months attested, and check their cap tables; True when all are confirmed and agree."""
    assert gold.token is not None
    path = f"{gold.path}/attestations"
    ends = scenario.month_ends
    asked = [f"{path}/{client.post(path, {'asOf': str(end)})['id']}" for end in ends]
    console.print(f"POST .../attestations                    of GOLD, {ends[0]} to {ends[-1]}")
    _wait_for_past(client, asked, "month-ends attested", service, console, limit_seconds)
    verdicts = []
    for end in ends:
        pages = list(client.pages(f"{gold.path}/cap-table", asOf=str(end), limit=_PAGE))
        verdict = check_cap_table(scenario.world, gold.token, 1, pages)
        verdicts.append((verdict, f"{end} {verdict.agreed} of {verdict.total} rows agree"))
        confirmed = check_attested(scenario.world, end, pages)
        verdicts.append((confirmed, f"{end} {confirmed.agreed} of {confirmed.total} rows are confirmed"))
    console.print("\nAgainst balanceOf and totalSupply of the node at the last block of each month:")
    return _tell(verdicts, console)


def _compare_values(
    client: ApiClient,
    scenario: Scenario,
    pricing: prices.Pricing,
    gold: Subject,
    wallet: Subject,
    console: Console,
) -> bool:
    """Show prices and values, check them, and print a summary; True when every number agrees."""
    assert gold.token is not None
    verdicts = prices.compare(
        client, scenario, pricing, (gold.path, gold.token), (wallet.path, wallet.address), console
    )
    console.print("\nAgainst the rounds of the feeds, the manual prices, balanceOf and totalSupply, in exact decimals:")
    return _tell(
        [(verdict, f"{verdict.agreed} of {verdict.total} {text} agree") for verdict, text in verdicts], console
    )


def _compare_reports(client: ApiClient, scenario: Scenario, gold: Subject, wallet: Subject, console: Console) -> bool:
    """Make links to the reports, check their data, and print a summary; return True if every number agrees."""
    assert gold.token is not None
    token_id, wallet_id = (subject.path.rpartition("/")[2] for subject in (gold, wallet))
    verdicts = reports.compare(client, scenario, (token_id, gold.token), (wallet_id, wallet.address), console)
    console.print("\nAgainst balanceOf, eth_getBalance, totalSupply and the logs of the node:")
    return _tell(
        [(verdict, f"{verdict.agreed} of {verdict.total} {text} agree") for verdict, text in verdicts], console
    )


def _tell(verdicts: Sequence[tuple[Verdict, str]], console: Console) -> bool:
    """Print a line for each verdict, and the problems; return True if there are comparisons and no problems."""
    for verdict, text in verdicts:
        mark = "[green]agree[/]" if verdict.is_agreed else "[red]DIFFER[/]"
        console.print(f"  {mark}  {text}")
    problems = [problem for verdict, _ in verdicts for problem in verdict.problems]
    for problem in problems[:20]:
        console.print(f"  [red]{escape(problem)}[/]")
    if len(problems) > 20:
        console.print(f"  [red]and {len(problems) - 20} more[/]")
    if not any(verdict.total for verdict, _ in verdicts):
        console.print("  [red]there was nothing to compare[/]")
        return False
    return not problems


def _print_cap_table(page: dict[str, Any], console: Console) -> None:
    table = _table(f"Cap table of GOLD at block {page['asOf']['blockNumber']}", "Wallet", "Quantity >", "Percent >")
    for row in page["data"][:8]:
        table.add_row(row["wallet"], row["quantity"], row["percentage"])
    rest = page["unattributed"]
    table.add_row("held by nobody seen", rest["quantity"], rest["percentage"])
    console.print(table)
    console.print(f"total supply {page['totalSupply']}, {page['holderCount']} holders: {page['holdersStatus']}")


def _print_activities(page: dict[str, Any], console: Console) -> None:
    table = _table("Newest activities of GOLD", "Date", "Type", "From", "To", "Amount >", "Status")
    for row in page["data"][:5]:
        parties = (f"{row[name][:8]}.." if row[name] else "-" for name in ("fromWallet", "toWallet"))
        table.add_row(row["date"], row["type"], *parties, row["amount"], row["status"])
    console.print(table)


def _print_balances(answer: dict[str, Any], console: Console) -> None:
    title = f"Balances of Wallet 1 at block {answer['asOf']['blockNumber']}"
    table = _table(title, "Token", "Quantity >", "Reconciliation")
    for row in answer["current"]:
        table.add_row(row["token"]["symbol"] or row["token"]["ledgerId"], row["quantity"], row["reconciliation"])
    console.print(table)


def _table(title: str, *columns: str) -> Table:
    """Create a table that never shortens its content; a column name ending with ` >` aligns it to the right."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(
            column.removesuffix(" >"), justify="right" if column.endswith(" >") else "left", overflow="fold"
        )
    return table


def _show_where(service: Service, key: str, report_link: str, subjects: Sequence[Subject], console: Console) -> None:
    console.rule("Have a look")
    console.print(f"API documentation   {service.api_url}/docs")
    console.print(f"Dagster's runs      {service.dagster_url}/runs")
    console.print(f"API key             {key}")
    call = f"curl -s -H 'Authorization: Bearer {key}' {service.api_url}{subjects[0].path}/cap-table?limit=3"
    console.print("Try this:", call)
    console.print("New transfers keep arriving. Ctrl-C stops everything.")
    console.print(f"\nAll reports, for the next ten minutes:\n{report_link}\n")


def _go_on(
    client: ApiClient, scenario: Scenario, service: Service, subjects: Sequence[Subject], console: Console
) -> None:
    """Make a small block every second, and show how far the API is, until interrupted."""
    with _Progress(console) as progress:
        while True:
            begun = time.monotonic()
            head = scenario.step(3)
            service.check_running()
            progress.show(scenario.sent, None, _shown_block(client, subjects[0]), head)
            time.sleep(max(0.0, begun + 1 - time.monotonic()))


if __name__ == "__main__":
    sys.exit(main())
