"""Misfortunes of chains, with all numbers compared: `python -m tests.integration.misfortunes [--faults]`.

The misfortunes happen together, on one real node with one service. At the end all answers of the API are compared with
the node's. With `--faults` a second round runs behind failing providers, and must end in the same state.
"""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.chain.fault_proxy import (
    CutFault,
    Fault,
    HttpFault,
    LostLogsFault,
    RangeFault,
    ResultFault,
    RpcFault,
    StaleFault,
)
from tests.chain.node import NodeError
from tests.e2e.client import ApiError
from tests.integration.misfortunes_scripts import MISFORTUNES, Case, Misfortune
from tests.integration.misfortunes_system import Faults, System, SystemFailure, prepare
from tests.integration.misfortunes_verify import Chain, Finding, check_subject, end_state

# A set for each run of the pipeline: two among the misfortunes, then until it is idle.
PROVIDER_FAULTS = Faults(
    always=[RangeFault(blocks=9)],
    by_turns=[
        [
            LostLogsFault(times=1, logs=3),
            HttpFault(status=429, retry_after="1", times=2),
            CutFault(times=2, methods=["eth_getLogs"]),
        ],
        [LostLogsFault(times=1, logs=2), HttpFault(status=503, times=2, methods=["eth_call"])],
        [
            StaleFault(blocks=7, times=3),
            CutFault(times=1, methods=["eth_getBlockByNumber"]),
            ResultFault(logs=12, is_suggesting=True, times=2),
        ],
        [RpcFault(code=-32005, message="request rate exceeded", times=3), HttpFault(status=502, times=2)],
        [HttpFault(status=429, retry_after="1", times=2), StaleFault(blocks=70, times=2)],
    ],
)
ROUNDS = (("Every number against the node's", None), ("Behind failing providers", PROVIDER_FAULTS))
# Blocks after the last event: all events become final and are read a second time.
_FINALITY = 70
_MOST_PROBLEMS = 40
# Characters of a difference between two end states, which may be of whole lists.
_SHOWN = 600
# Columns where the output is not a terminal.
_FILE_WIDTH = 120
_DONE = object()


@dataclass(frozen=True)
class Result:
    """The result of a round: a finding for each misfortune, the end state, and faults that never occurred."""

    findings: dict[Misfortune, Finding]
    state: dict[str, Any]
    unused_faults: list[Fault]

    @property
    def problems(self) -> list[str]:
        """All problems, with the misfortunes' names."""
        return [
            f"{misfortune.name}: {text}" for misfortune, finding in self.findings.items() for text in finding.problems
        ]


def run_all(system: System, misfortunes: Sequence[Misfortune] = MISFORTUNES) -> dict[Misfortune, Case]:
    """Run the scripts of misfortunes on an open system until the service is idle.

    Raises:
        SystemFailure: the service made no progress.
    """
    wallets = iter(system.world.wallets)
    cases = {misfortune: Case(system, wallets) for misfortune in misfortunes}
    under_way = {misfortune: misfortune.script(case) for misfortune, case in cases.items()}
    for run in (system.collect, system.cycle, None):
        under_way = {misfortune: script for misfortune, script in under_way.items() if next(script, _DONE) is not _DONE}
        if run is not None:
            run()
    assert not under_way, "a script has more than three parts"
    for _ in range(_FINALITY):
        system.world.mine()
    system.settle()
    return cases


def compare(system: System, cases: Mapping[Misfortune, Case]) -> Result:
    """Hold everything that the API shows against the node."""
    chain = Chain(system.world)
    return Result(
        {misfortune: _compare(chain, case) for misfortune, case in cases.items()},
        end_state([subject for case in cases.values() for subject in case.expected]),
        system.unused_faults(),
    )


def _compare(chain: Chain, case: Case) -> Finding:
    finding = Finding()
    for subject, expected in case.expected.items():
        check_subject(chain, subject, expected, finding)
    for what, is_so in case.checks:
        finding.count(None if is_so() else f"not so: {what}")
    return finding


def show(title: str, result: Result, console: Console) -> None:
    """Print a row for each misfortune, and all problems."""
    table = Table(title=title, title_justify="left")
    for column in ("Misfortune", "What was done"):
        table.add_column(column, overflow="fold")
    for column in ("Compared", "Agreed", "Explained"):
        table.add_column(column, justify="right")
    table.add_column("Result")
    for misfortune, finding in result.findings.items():
        table.add_row(
            misfortune.name,
            misfortune.told,
            f"{finding.total:,}",
            f"{finding.agreed:,}",
            f"{finding.explained:,}",
            "[green]true[/]" if finding.is_agreed else "[red]WRONG[/]",
        )
    console.print(table)
    for problem in result.problems[:_MOST_PROBLEMS]:
        console.print(f"[red]{escape(problem)}[/]")
    if len(result.problems) > _MOST_PROBLEMS:
        console.print(f"[red]and {len(result.problems) - _MOST_PROBLEMS} more[/]")


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Say where two end states differ."""
    return [
        f"{key}: {str(first.get(key))[:_SHOWN]} and {str(second.get(key))[:_SHOWN]}"
        for key in sorted(first.keys() | second.keys())
        if first.get(key) != second.get(key)
    ]


def _conclude(results: Sequence[Result], console: Console) -> int:
    different = [line for other in results[1:] for line in differences(results[0].state, other.state)]
    for line in different[:_MOST_PROBLEMS]:
        console.print(f"[red]{escape(line)}[/]")
    if len(results) > 1:
        console.print("[red]The end states differ.[/]" if different else "[green]The end states are the same.[/]")
    return int(bool(different) or any(result.problems for result in results))


def main() -> int:
    """Run them all; 0 every number is true, 1 some is not, 2 it could not be run to the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.integration.misfortunes", description=__doc__)
    parser.add_argument("--faults", action="store_true", help="once more behind failing providers")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this one; may be repeated")
    options = parser.parse_args()
    names = {misfortune.name for misfortune in MISFORTUNES}
    if unknown := set(options.only) - names:
        parser.error(f"no misfortune is called {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    chosen = [misfortune for misfortune in MISFORTUNES if not options.only or misfortune.name in options.only]
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="misfortunes-") as folder:
            prepare(prepared := Path(folder) / "prepared")
            results: list[Result] = []
            for title, faults in ROUNDS if options.faults else ROUNDS[:1]:
                with (
                    console.status("Running on a real node; this takes a minute or two."),
                    System(shutil.copytree(prepared, Path(folder) / str(len(results))), faults) as system,
                ):
                    results.append(compare(system, run_all(system, chosen)))
                show(title, results[-1], console)
            return _conclude(results, console)
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    except (SystemFailure, NodeError, ApiError) as error:
        console.print(f"[red]It could not be run to the end:[/] {escape(str(error))}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
