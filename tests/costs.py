"""Costs of tests in CPU seconds: measured in every run, and declared in `costs.toml` for each file.

The declared costs of the collected tests must fit the budget of their tier, so no clock decides. Files start by
declared cost, dearest first: a long file that starts last would leave one processor idle.
"""

import resource
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

TIERS = ("test", "ci", "release")
_CHECKOUT = Path(__file__).parents[1]
_DECLARED = Path(__file__).with_name("costs.toml")
# CPU seconds that one test of a file without a declared cost counts.
_UNLISTED = 0.15
# Differences below this many CPU seconds are noise.
_NOISE = 2.0
# CPU seconds of `_work` on the reference machine. `costs.toml` has seconds of that machine.
_REFERENCE = 0.40
_OVER_BUDGET = "over_budget"
_over: set[str] = set()
_begun = _elsewhere = 0.0


def add(seconds: float) -> None:
    """Count CPU seconds that a process outside this process's tree used for the current test."""
    global _elsewhere
    _elsewhere += seconds


def tier(item: pytest.Item) -> str:
    """Return the command that runs the test first: `test`, `ci` or `release`."""
    return next((name for name in TIERS[:0:-1] if item.get_closest_marker(name)), TIERS[0])


def declared() -> dict[str, dict[str, float]]:
    """Return the content of `costs.toml`: budgets, and for each tier the cost of each file."""
    return tomllib.loads(_DECLARED.read_text())


def _used() -> float:
    """Return the CPU seconds of this process, its ended children, and processes counted by `add`."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return _elsewhere + sum(one.ru_utime + one.ru_stime for one in found)


def _work() -> float:
    """Return the CPU seconds of a fixed piece of work, the least of three."""
    found = []
    for _ in range(3):
        begun = time.process_time()
        sum(number * number % 7 for number in range(4_000_000))
        found.append(time.process_time() - begun)
    return min(found)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="K/N", help="run part K of N parts")
    parser.addoption("--write-costs", action="store_true", help="store the measured costs in tests/costs.toml")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the part, compare the declared costs with the budgets, and put the dearest files first."""
    costs, files = declared(), defaultdict[str, list[pytest.Item]](list)
    for item in items:
        files[_file(item)].append(item)
    found = {
        file: {name: costs[name].get(file, _UNLISTED * count) for name, count in Counter(map(tier, tests)).items()}
        for file, tests in files.items()
    }
    order = sorted(found, key=lambda file: (-sum(found[file].values()), file))
    if config.option.part:
        number, count = map(int, config.option.part.split("/"))
        if not 1 <= number <= count:
            raise pytest.UsageError(f"--part is {config.option.part}; use 1/{count} to {count}/{count}")
        # By name: the costs change from part to part, and no file may change its part.
        chosen = set(sorted(found)[number - 1 :: count])
        order = [file for file in order if file in chosen]
        config.hook.pytest_deselected(
            items=[one for file, tests in files.items() if file not in order for one in tests]
        )
    items[:] = [item for file in order for item in files[file]]
    messages = [
        message
        for name, budget in costs["budget"].items()
        if (message := _over_budget(name, budget, {file: found[file].get(name, 0) for file in order}))
    ]
    if messages and hasattr(config, "workeroutput"):
        # An error in a process of pytest-xdist would be shown as a crash: its main process fails instead.
        config.workeroutput[_OVER_BUDGET] = messages
        items.clear()
    elif messages:
        raise pytest.UsageError(*messages)


def _over_budget(name: str, budget: float, costs: dict[str, float]) -> str | None:
    """Return the message where the costs of files are above a budget."""
    if (total := sum(costs.values())) <= budget:
        return None
    dearest = sorted(costs.items(), key=lambda one: -one[1])[:10]
    listed = "".join(f"\n  {cost:6.1f}  {file}" for file, cost in dearest)
    return (
        f"the tests of tier `{name}` cost {total:.0f} CPU s, and the budget in tests/costs.toml is {budget:.0f};"
        f" make a test cheaper or move one to the next tier. The dearest files:{listed}"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the message of a process of pytest-xdist."""
    _over.update(getattr(node, "workeroutput", {}).get(_OVER_BUDGET, []))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _over:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


def _file(test: pytest.Item | pytest.TestReport) -> str:
    return test.nodeid.partition("::")[0]


def pytest_runtest_logstart() -> None:
    global _begun
    _begun = _used()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the test's CPU seconds and tier to the report of its end, which pytest-xdist passes to its main process."""
    report = yield
    if call.when == "teardown":
        report.user_properties += [("cpu", _used() - _begun), ("tier", tier(item))]
    return report


_tests: Counter[str] = Counter()
_files: Counter[tuple[str, str]] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    found = dict(report.user_properties)
    if "cpu" in found:
        _tests[report.nodeid.partition("[")[0]] += found["cpu"]
        _files[found["tier"], _file(report)] += found["cpu"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the ten dearest tests; for `make test-all` also the files that became dearer, and store all costs."""
    for message in _over:
        terminalreporter.write_line(f"ERROR: {message}", red=True)
    if terminalreporter.verbosity < 0 or not _tests:
        return
    terminalreporter.section(f"{_tests.total():.0f} CPU seconds; the dearest tests")
    for name, seconds in _tests.most_common(10):
        terminalreporter.write_line(f"{seconds:7.1f}  {name}")
    if not config.option.write_costs:
        return
    costs, speed = declared(), _REFERENCE / _work()
    terminalreporter.section(f"files above 1.5 times their declared cost (this machine's speed: {speed:.2f})")
    for (name, file), seconds in sorted(_files.items()):
        before, now = costs[name].get(file, 0), seconds * speed
        if now > 1.5 * before + _NOISE:
            terminalreporter.write_line(f"{now:7.1f}  {file} ({name}), declared {before}")
    for name in TIERS:
        # Tests of a file may have moved to another tier.
        measured = {file: seconds * speed for (of, file), seconds in _files.items() if of == name}
        others = {file: cost for file, cost in costs[name].items() if all((one, file) not in _files for one in TIERS)}
        costs[name] = others | {file: round(now, 1 if now < 10 else None) for file, now in measured.items()}
    _write(costs)


def _write(costs: dict[str, dict[str, float]]) -> None:
    """Store the costs; files that no longer exist are left out."""
    lines = _DECLARED.read_text().partition("[test]")[0].splitlines()
    for name in TIERS:
        lines.append(f"[{name}]")
        lines += [f'"{file}" = {cost}' for file, cost in sorted(costs[name].items()) if (_CHECKOUT / file).exists()]
        lines.append("")
    _DECLARED.write_text("\n".join(lines))
