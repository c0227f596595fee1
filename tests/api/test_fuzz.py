"""A small, fixed part of `make fuzz`: the same requests each time."""

from tests.api.world import World
from tests.fuzz.campaign import run

PHASES = ("examples", "fuzzing", "stateful")  # the phase of coverage alone makes six thousand requests


def test_a_small_campaign_finds_nothing(valued: World) -> None:
    outcome = run(valued, most_examples=1, phases=PHASES)
    assert outcome.is_clean, str(outcome)
    assert sum(outcome.cases.values()) > 400
