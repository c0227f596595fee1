"""Shared parts of the demo's stories: the running service, tracked subjects, and printing."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from tests.chain.world import Token
from tests.e2e import prices
from tests.e2e.checks import Verdict
from tests.e2e.client import ApiClient
from tests.e2e.service import Service

TENANT = "demo"
LEDGER = "demo-chain"
MORE_TIME = "On a slow machine, wait longer: make demo LIMIT=900"


class DemoError(Exception):
    """The demo cannot continue; the message says why."""


@dataclass(frozen=True)
class Subject:
    """A tracked token or wallet: its path in the API, its address, and the start of its window, as the API says it."""

    path: str
    label: str
    address: str
    opened: str
    token: Token | None

    @property
    def id(self) -> str:
        """Its id in the API."""
        return self.path.rpartition("/")[2]

    @property
    def shown_at(self) -> str:
        """The path of its holders or balances."""
        return f"{self.path}/{'balances' if self.token is None else 'cap-table'}"


class Scenario(Protocol):
    """A chain with its traffic: transfers of the past, and later ones in blocks of the present.

    `half` is the number of transfers in each part, `sent` the number until now.
    """

    half: int
    sent: int

    @property
    def tokens(self) -> Sequence[Token]:
        """Tokens to track."""

    @property
    def tracked_wallets(self) -> Sequence[str]:
        """Addresses of the wallets to track."""

    def step(self, count: int) -> int:
        """Make one block of now with `count` transfers, and return its number."""


@dataclass(frozen=True)
class Running:
    """The running service, the tenant's client and the console."""

    service: Service
    client: ApiClient
    console: Console
    limit_seconds: int

    def shown_block(self, subject: Subject) -> int:
        """Return the block of the API's answer about a subject; -1 before any collection."""
        answer = self.client.get(subject.shown_at, **({} if subject.token is None else {"limit": 1}))
        number = answer["asOf"]["blockNumber"]
        return -1 if number is None else int(number)

    def wait_for(self, operations: Sequence[str], done: str) -> None:
        """Wait for history requests, attestations and price discoveries while they make progress.

        Args:
            operations: paths of the operations.
            done: text after the number of completed operations.

        Raises:
            DemoError: an operation failed, or there was no progress for the limit.
        """
        with Progress(self.console) as progress:
            left = prices.wait_for(
                self.client,
                operations,
                self.limit_seconds,
                lambda number, of: progress.show_line(f"{number} of {of} {done}"),
            )
        if left:
            told = "; ".join(f"{answer['id']} is {answer['status']}: {answer['error']}" for answer in left)
            number = len(operations) - len(left)
            raise DemoError(
                f"{number} of {len(operations)} {done}, and one failed or nothing has changed for "
                f"{self.limit_seconds} s: {told}. {MORE_TIME}\n{self.service.log_tail()}"
            )

    def wait_until(self, is_done: Callable[[], bool], what: str) -> None:
        """Wait until the API shows something new.

        Raises:
            DemoError: it does not within the limit.
        """
        deadline = time.monotonic() + self.limit_seconds
        while not is_done():
            self.service.check_running()
            if time.monotonic() > deadline:
                raise DemoError(
                    f"after {self.limit_seconds} s the API does not show {what}. {MORE_TIME}\n{self.service.log_tail()}"
                )
            time.sleep(1)

    def print_verdicts(self, against: str, verdicts: Sequence[tuple[Verdict, str]]) -> bool:
        """Print the source of the truth, a line for each verdict, and the problems.

        Returns:
            True if there are comparisons and no problems.
        """
        self.console.print(f"\nAgainst {against}:")
        for verdict, text in verdicts:
            mark = "[green]agree[/]" if verdict.is_agreed else "[red]DIFFER[/]"
            self.console.print(f"  {mark}  {text}")
        problems = [problem for verdict, _ in verdicts for problem in verdict.problems]
        for problem in problems[:20]:
            self.console.print(f"  [red]{escape(problem)}[/]")
        if len(problems) > 20:
            self.console.print(f"  [red]and {len(problems) - 20} more[/]")
        if not any(verdict.total for verdict, _ in verdicts):
            self.console.print("  [red]there was nothing to compare[/]")
            return False
        return not problems


class Story(ABC):
    """The parts of the demo that differ by family of networks.

    Attributes:
        network: its name in the definitions of networks.
        url: of the node.
        settings: environment variables for the service.
        scenario: the chain.
    """

    network: ClassVar[str]
    url: str
    settings: Mapping[str, str]
    scenario: Scenario

    @abstractmethod
    def set_up(self, running: Running, subjects: Sequence[Subject]) -> list[str]:
        """Configure prices, and return the paths of operations that must end before the comparison."""

    @abstractmethod
    def with_history(self, subjects: Sequence[Subject]) -> list[Subject]:
        """Return the subjects to request the whole past of."""

    @abstractmethod
    def chapters(
        self, running: Running, subjects: Sequence[Subject], last_block: int
    ) -> Iterator[tuple[str, Callable[[], bool]]]:
        """Yield titles and comparisons in order. A comparison returns True if every number agrees.

        Args:
            running: the service, which shows `last_block`.
            subjects: the tracked tokens and wallets.
            last_block: the newest block with transfers.
        """


def agreed(verdicts: Sequence[tuple[Verdict, str]]) -> list[tuple[Verdict, str]]:
    """Put the numbers of comparisons before the name of each verdict."""
    return [(verdict, f"{verdict.agreed} of {verdict.total} {text} agree") for verdict, text in verdicts]


class Progress:
    """One line that stays in its place in a terminal; elsewhere a line when it changed, every few seconds at most."""

    _QUIET_SECONDS = 5.0

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal else None
        self._line = ""
        self._printed = ("", 0.0)

    def __enter__(self) -> "Progress":
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
        self.show_line(f"transactions sent: {amount}    the API shows: {api}")

    def show_line(self, line: str) -> None:
        """Replace the line that is shown."""
        self._line = line
        if self._live is not None:
            self._live.update(line)
        elif line != self._printed[0] and time.monotonic() - self._printed[1] >= self._QUIET_SECONDS:
            self._console.print(line)
            self._printed = (line, time.monotonic())


def table(title: str, *columns: str) -> Table:
    """Create a table that never shortens its content; a column name ending with ` >` aligns it to the right."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(
            column.removesuffix(" >"), justify="right" if column.endswith(" >") else "left", overflow="fold"
        )
    return table


def print_balances(answer: dict[str, Any], console: Console) -> None:
    """Print the positions of Wallet 1."""
    title = f"Balances of Wallet 1 at block {answer['asOf']['blockNumber']}"
    shown = table(title, "Token", "Quantity >", "Reconciliation")
    for row in answer["current"]:
        shown.add_row(row["token"]["symbol"] or row["token"]["ledgerId"], row["quantity"], row["reconciliation"])
    console.print(shown)
