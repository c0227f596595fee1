"""A small, fixed part of `make fuzz`: the same requests each time."""

from tests.api.world import World
from tests.fuzz.campaign import run

PHASES = ("examples", "stateful")  # the two other phases make six thousand requests at least


def test_a_small_campaign_finds_nothing(valued: World) -> None:
    outcome = run(valued, most_examples=3, phases=PHASES)
    assert outcome.is_clean, str(outcome)
    assert sum(outcome.cases.values()) > 400
