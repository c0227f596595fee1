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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.markup import escape

from tests.chain.node import NodeError
from tests.chain.process import adopt_orphans, stop_descendants
from tests.chain.world import Token
from tests.e2e.client import ApiClient, ApiError
from tests.e2e.evm_story import EvmStory
from tests.e2e.service import Service, ServiceError
from tests.e2e.story import LEDGER, MORE_TIME, TENANT, DemoError, Progress, Running, Scenario, Story, Subject
from tests.e2e.utxo_story import UtxoStory

_DATA_DIR = Path(__file__).parents[2] / "data" / "demo"
_PER_BLOCK = 50
_CYCLE_SECONDS = 5
_STORIES: dict[str, Callable[..., Story]] = {"evm": EvmStory, "utxo": UtxoStory}
# Width if the output is not a terminal, so that tables have room for whole numbers.
_FILE_WIDTH = 120


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
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.demo", description="Ledgermart on a local node.")
    parser.add_argument("--family", choices=list(_STORIES), default="evm", help="of the node's network (default evm)")
    parser.add_argument("--once", action="store_true", help="check every number, stop, and exit 1 when any differs")
    parser.add_argument("--transfers", type=int, default=4000, help="random transactions (default 4000)")
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
        story = _STORIES[options.family](started, options.data_dir, options.transfers, console)

        console.rule("The service")
        extra = {
            "LEDGERMART_CYCLE_SECONDS": str(_CYCLE_SECONDS),
            "LEDGERMART_PRICE_POLL_SECONDS": str(_CYCLE_SECONDS),
            **story.settings,
        }
        service = started.enter_context(Service(options.data_dir, story.url, extra, story.network))
        console.print("Initialising the stores: some 15 s, more on a busy machine.")
        key = service.init(TENANT)
        console.print("Starting API, worker and Dagster.")
        service.start(options.limit)
        console.print(f"Up: the API at {service.api_url}, Dagster's runs at {service.dagster_url}/runs.")

        console.rule("Set up through the API")
        client = started.enter_context(ApiClient(service.api_url, key))
        running = Running(service, client, console, options.limit)
        subjects = _set_up(running, story)
        operations = story.set_up(running, subjects)
        past = story.with_history(subjects)
        for subject in past:
            path = f"{subject.path}/history-requests"
            operations.append(f"{path}/{client.post(path, {'from': 'creation', 'to': 'now'})['id']}")
        names = ", ".join(subject.label for subject in past)
        console.print(f"POST .../history-requests                of {names}, from creation on")

        console.rule("What happens next is collected")
        last_block = _collect(running, story.scenario, subjects)
        running.wait_for(operations, "requests for the past done")

        is_agreed = True
        for title, compare in story.chapters(running, subjects, last_block):
            console.rule(title)
            is_agreed &= compare()
        report_link = _link_to_reports(service, key)
        console.print("ledgermart report                        a link to the list of all reports")
        if options.once:
            return 0 if is_agreed else 1
        _show_where(service, key, report_link, subjects, console)
        _go_on(running, story.scenario, subjects)
    raise AssertionError("unreachable: going on ends by a signal or an error")


def _link_to_reports(service: Service, key: str) -> str:
    """Have the console command make a link to the list of all reports."""
    made = json.loads(service.run("report", "--json", variables={"LEDGERMART_API_KEY": key}))
    assert "/embed/index/" in made["reportUrl"]
    return str(made["reportUrl"])


def _set_up(running: Running, story: Story) -> list[Subject]:
    """Go through the spec's sequences: networks, a ledger, tokens and wallets, tracking, lists."""
    client, console, scenario = running.client, running.console, story.scenario
    networks = [network["name"] for page in client.pages("/v1/networks") for network in page["data"]]
    console.print(f"GET  /v1/networks                        {', '.join(networks)}")
    client.put(f"/v1/networks/{story.network}/ledgers", {"name": LEDGER, "displayName": "Demo chain"})
    ledgers = [ledger["name"] for page in client.pages("/v1/networks/ledgers") for ledger in page["data"]]
    console.print(f"PUT  {f'/v1/networks/{story.network}/ledgers':35} {', '.join(ledgers)}")
    created: list[tuple[str, str, str, Token | None]] = []
    for token in scenario.tokens:
        body = {"ledger": LEDGER, "symbol": token.symbol, "ledgerId": token.address, "name": f"Demo {token.symbol}"}
        answer = client.post("/v1/tokens", body)
        created.append((f"/v1/tokens/{answer['id']}", str(token.symbol), token.address, token))
    for index, wallet in enumerate(scenario.tracked_wallets, start=1):
        body = {"ledger": LEDGER, "ledgerId": wallet, "name": f"Wallet {index}", "externalId": f"customer-{index}"}
        answer = client.post("/v1/wallets", body)
        created.append((f"/v1/wallets/{answer['id']}", f"Wallet {index}", wallet, None))
    subjects = [
        Subject(
            path,
            label,
            address,
            client.put(f"{path}/tracking", {"trackingStatus": "enabled"})["windows"][-1]["from"],
            token,
        )
        for path, label, address, token in created
    ]
    # A window opens in a whole second; its first block is known once one exists at or after that second.
    scenario.step(_PER_BLOCK)
    for path in ("/v1/tokens", "/v1/wallets"):
        rows = [row for page in client.pages(path) for row in page["data"]]
        shown = ", ".join(f"{row['name']} {row['trackingStatus']}" for row in rows)
        console.print(f"POST, PUT .../tracking, GET {path:12} {shown or 'none'}")
    return subjects


def _collect(running: Running, scenario: Scenario, subjects: Sequence[Subject]) -> int:
    """Make the second half, a block a second, and wait until the API shows all of it.

    Returns:
        The last block with transfers.

    Raises:
        DemoError: the API shows nothing new for the limit; the message has the block of each subject.
    """
    last_block = 0
    known: dict[str, int] = {}
    deadline = 0.0
    total = 2 * scenario.half
    with Progress(running.console) as progress:
        while True:
            begun = time.monotonic()
            left = total - scenario.sent
            if left > 0:
                last_block = scenario.step(min(_PER_BLOCK, left))
            running.service.check_running()
            shown = {subject.label: running.shown_block(subject) for subject in subjects}
            if left > 0 or shown != known:
                known, deadline = shown, time.monotonic() + running.limit_seconds
            reached = min(shown.values())
            progress.show(scenario.sent, total, reached, last_block)
            if left <= 0 and reached >= last_block:
                return last_block
            if left <= 0 and time.monotonic() > deadline:
                behind = ", ".join(f"{label} {block}" for label, block in shown.items() if block < last_block)
                raise DemoError(
                    f"for {running.limit_seconds} s the API has shown nothing new, and not yet block {last_block}. "
                    f"Behind (-1: nothing collected): {behind}. {MORE_TIME}\n{running.service.log_tail()}"
                )
            time.sleep(max(0.0, begun + 1 - time.monotonic()))


def _show_where(service: Service, key: str, report_link: str, subjects: Sequence[Subject], console: Console) -> None:
    console.rule("Have a look")
    console.print(f"API documentation   {service.api_url}/docs")
    console.print(f"Dagster's runs      {service.dagster_url}/runs")
    console.print(f"API key             {key}")
    call = f"curl -s -H 'Authorization: Bearer {key}' {service.api_url}{subjects[0].shown_at}"
    console.print("Try this:", call)
    console.print("New transfers keep arriving. Ctrl-C stops everything.")
    console.print(f"\nAll reports, for the next ten minutes:\n{report_link}\n")


def _go_on(running: Running, scenario: Scenario, subjects: Sequence[Subject]) -> None:
    """Make a small block every second, and show how far the API is, until interrupted."""
    with Progress(running.console) as progress:
        while True:
            begun = time.monotonic()
            head = scenario.step(3)
            running.service.check_running()
            progress.show(scenario.sent, None, running.shown_block(subjects[0]), head)
            time.sleep(max(0.0, begun + 1 - time.monotonic()))


if __name__ == "__main__":
    sys.exit(main())
