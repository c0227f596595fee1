"""A small, fixed part of `make fuzz`: the same requests every time."""

import pytest

from tests.api.world import World

pytestmark = pytest.mark.ci

PHASES = ("examples", "stateful")  # the two other phases send at least six thousand requests


def test_small_campaign_finds_no_failure(valued: World) -> None:
    # Imported late: every process of a test run collects this file, and schemathesis takes seconds.
    from tests.fuzz.campaign import run

    outcome = run(valued, most_examples=3, phases=PHASES)
    assert outcome.is_clean, str(outcome)
    assert sum(outcome.cases.values()) > 400
