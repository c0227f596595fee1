"""The range planner accepts every block exactly once, despite any refusals."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from pipelines.extract.evm.chunks import BlockRange, RangePlanner

Limit = Callable[[BlockRange], bool]


def run(
    planner: RangePlanner, accepts: Limit, logs: Callable[[BlockRange], int], in_flight: int = 1
) -> tuple[list[BlockRange], int]:
    """Return accepted pieces and the number of refusals, with up to `in_flight` pieces requested together."""
    accepted: list[BlockRange] = []
    refusals = 0
    asked: list[BlockRange] = []
    while planner.next_block is not None or asked:
        while planner.next_block is not None and len(asked) < in_flight:
            asked.append(planner.take())
        piece = asked.pop(0)
        if accepts(piece):
            planner.succeeded(piece, logs(piece))
            accepted.append(piece)
        else:
            planner.refused(piece)
            refusals += 1
    return accepted, refusals


def blocks(pieces: list[BlockRange]) -> list[int]:
    return [number for first, last in sorted(pieces) for number in range(first, last + 1)]


@given(
    first=st.integers(0, 50),
    length=st.integers(0, 2_000),
    widest=st.integers(1, 300),
    density=st.integers(0, 2_000),
    max_range=st.none() | st.integers(1, 500),
    in_flight=st.integers(1, 6),
)
def test_every_block_is_accepted_once(
    first: int, length: int, widest: int, density: int, max_range: int | None, in_flight: int
) -> None:
    planner = RangePlanner(first, first + length - 1, max_range)
    accepted, _ = run(
        planner,
        lambda piece: piece[1] - piece[0] < widest,
        lambda piece: density * (piece[1] - piece[0] + 1),
        in_flight,
    )
    assert blocks(accepted) == list(range(first, first + length))


def test_block_limit_is_found_with_few_refusals_and_used() -> None:
    accepted, refusals = run(RangePlanner(0, 99_999), lambda piece: piece[1] - piece[0] < 2_048, lambda _: 0)
    sizes = [last - first + 1 for first, last in accepted]
    assert refusals < 12
    assert len(accepted) < 90
    assert max(sizes) > 1_600


def test_responses_approach_the_target_size() -> None:
    accepted, refusals = run(RangePlanner(0, 9_999), lambda piece: True, lambda piece: 40 * (piece[1] - piece[0] + 1))
    sizes = [last - first + 1 for first, last in accepted]
    assert refusals == 0
    assert sizes[0] == 20
    assert all(50 <= size <= 250 for size in sizes[3:-1])


def test_suggested_range_is_used_if_it_is_a_shorter_prefix() -> None:
    planner = RangePlanner(100, 10_000)
    first = planner.take()
    planner.refused(first, (100, 102))
    assert planner.take() == (100, 102)


def test_other_suggestions_halve_the_range() -> None:
    for suggested in ((100, 119), (100, 500), (101, 105), (99, 105), (100, 99), None):
        planner = RangePlanner(100, 10_000)
        assert planner.take() == (100, 119)
        planner.refused((100, 119), suggested)
        assert planner.take() == (100, 109), suggested


def test_refused_pieces_in_flight_are_requeued_in_order() -> None:
    planner = RangePlanner(0, 1_000)
    pieces = [planner.take() for _ in range(3)]
    planner.refused(pieces[1])
    planner.refused(pieces[0])
    assert planner.take() == (0, 9)
    assert planner.next_block == 10


def test_ceiling_is_raised_again_after_long_success() -> None:
    dense = range(500)
    planner = RangePlanner(0, 50_000)
    accepted, _ = run(planner, lambda piece: piece[0] not in dense or piece[1] - piece[0] < 4, lambda _: 0)
    assert max(last - first + 1 for first, last in accepted) > 1_000


def test_max_range_is_never_exceeded() -> None:
    accepted, _ = run(RangePlanner(0, 5_000, 7), lambda piece: True, lambda _: 0)
    assert max(last - first + 1 for first, last in accepted) == 7
