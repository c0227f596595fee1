"""The verdicts of `make faults` and `make soak`."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.faults.table import Row, as_markdown, named_command
from tests.soak.growth import Growth

# It tests a tool of the tests.
pytestmark = pytest.mark.release

GOOD = Row("a fault", Counter({"ok": 90, "503 busy": 4, "refused": 6}), lost=0, seconds=2.4)


@pytest.mark.parametrize(
    ("row", "is_good"),
    [
        (GOOD, True),
        (replace(GOOD, steps=("restore",)), True),
        (replace(GOOD, steps=("restore", "cycle --rebuild")), False),
        (replace(GOOD, lost=1), False),
        (replace(GOOD, lost=None), False),
        (replace(GOOD, seconds=None), False),
        (Row("a fault", note="no clock", is_done=False), True),
    ],
)
def test_verdict_fails_if_rows_are_lost_or_one_command_is_not_enough(row: Row, is_good: bool) -> None:
    assert row.is_good == is_good
    assert ("FAILED" in as_markdown([row])) != is_good


def test_refused_connections_are_counted_apart_from_failed_requests() -> None:
    assert as_markdown([GOOD]).splitlines()[-1] == "| a fault | 100 | 4 of 503 busy | 6 | 0 | 2 | 0 |  |"


def test_first_repair_in_a_message_is_used() -> None:
    message = (
        "damaged; see `ledgermart doctor`; restore with `ledgermart\nrestore`, or run `ledgermart cycle --rebuild`"
    )
    assert named_command(message) == "restore"
    assert named_command("run `ledgermart network reset local`") == "network reset local"
    assert named_command("run `ledgermart status`") is None


@pytest.mark.parametrize(
    ("values", "is_flat"),
    [
        ([900, 900, 100, 100, 100, 100, 100, 110, 110, 110], True),
        ([10, 10, 100, 100, 100, 100, 100, 300, 111, 111], False),
        ([10, 10, 10, 10, 10, 10, 10, 18, 18, 18], True),
        ([10, 10, 10, 10, 10, 10, 10, 19, 19, 19], False),
    ],
)
def test_growth_is_the_last_third_minus_the_first(values: list[float], is_flat: bool) -> None:
    assert Growth("API", "open files", values, allowed=8).is_flat == is_flat
