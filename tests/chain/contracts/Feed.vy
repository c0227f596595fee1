# pragma version 0.4.3
"""
@title A price feed as Chainlink's aggregators are, whose rounds tests write
@notice Anybody may write rounds. A round that was skipped answers with zeros, one that is not there yet reverts.
"""

struct Round:
    answer: int256
    started_at: uint256
    updated_at: uint256
    answered_in: uint80


MOST_ROUNDS: constant(uint256) = 500

decimals: public(uint8)
description: public(String[64])
version: public(uint256)
latest: uint80
rounds: HashMap[uint80, Round]


@deploy
def __init__(description: String[64], decimals: uint8):
    self.description = description
    self.decimals = decimals
    self.version = 4


@external
def answer(answer: int256, updated_at: uint256):
    """
    @notice Write the next round.
    """
    self._write(self.latest + 1, answer, updated_at, self.latest + 1)


@external
def answer_many(answers: DynArray[int256, MOST_ROUNDS], updated_at: DynArray[uint256, MOST_ROUNDS]):
    """
    @notice Write the next rounds, as many as there are answers.
    """
    assert len(answers) == len(updated_at), "lengths differ"
    for i: uint256 in range(len(answers), bound=MOST_ROUNDS):
        self._write(self.latest + 1, answers[i], updated_at[i], self.latest + 1)


@external
def write_round(round_id: uint80, answer: int256, updated_at: uint256, answered_in: uint80):
    """
    @notice Write any round, whatever is in it.
    """
    self._write(round_id, answer, updated_at, answered_in)


@internal
def _write(round_id: uint80, answer: int256, updated_at: uint256, answered_in: uint80):
    self.rounds[round_id] = Round(
        answer=answer, started_at=updated_at, updated_at=updated_at, answered_in=answered_in
    )
    self.latest = max(self.latest, round_id)


@external
@view
def latestRoundData() -> (uint80, int256, uint256, uint256, uint80):
    return self._round(self.latest)


@external
@view
def getRoundData(round_id: uint80) -> (uint80, int256, uint256, uint256, uint80):
    return self._round(round_id)


@internal
@view
def _round(round_id: uint80) -> (uint80, int256, uint256, uint256, uint80):
    assert round_id != 0 and round_id <= self.latest, "No data present"
    found: Round = self.rounds[round_id]
    return round_id, found.answer, found.started_at, found.updated_at, found.answered_in
