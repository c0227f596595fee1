# pragma version 0.4.3
"""
@title A feed's lasting address, behind which one aggregator follows another
@notice Each aggregator is a phase, counted from 1; a round's id is phase * 2**64 + the aggregator's own. Anybody may
        begin a phase.
"""

interface Aggregator:
    def decimals() -> uint8: view
    def description() -> String[64]: view
    def latestRoundData() -> (uint80, int256, uint256, uint256, uint80): view
    def getRoundData(round_id: uint80) -> (uint80, int256, uint256, uint256, uint80): view


PHASE: constant(uint80) = 2**64

phaseId: public(uint16)
phaseAggregators: public(HashMap[uint16, address])


@deploy
def __init__(aggregator: address):
    self._begin(aggregator)


@external
def begin_phase(aggregator: address):
    """
    @notice Answer with another aggregator from now on.
    """
    self._begin(aggregator)


@internal
def _begin(aggregator: address):
    self.phaseId += 1
    self.phaseAggregators[self.phaseId] = aggregator


@external
@view
def decimals() -> uint8:
    return staticcall Aggregator(self.phaseAggregators[self.phaseId]).decimals()


@external
@view
def description() -> String[64]:
    return staticcall Aggregator(self.phaseAggregators[self.phaseId]).description()


@external
@view
def latestRoundData() -> (uint80, int256, uint256, uint256, uint80):
    round_id: uint80 = 0
    answer: int256 = 0
    started_at: uint256 = 0
    updated_at: uint256 = 0
    answered_in: uint80 = 0
    round_id, answer, started_at, updated_at, answered_in = (
        staticcall Aggregator(self.phaseAggregators[self.phaseId]).latestRoundData()
    )
    first: uint80 = convert(self.phaseId, uint80) * PHASE
    return first + round_id, answer, started_at, updated_at, first + answered_in


@external
@view
def getRoundData(round_id: uint80) -> (uint80, int256, uint256, uint256, uint80):
    phase: uint16 = convert(round_id // PHASE, uint16)
    own_id: uint80 = 0
    answer: int256 = 0
    started_at: uint256 = 0
    updated_at: uint256 = 0
    answered_in: uint80 = 0
    own_id, answer, started_at, updated_at, answered_in = (
        staticcall Aggregator(self.phaseAggregators[phase]).getRoundData(round_id % PHASE)
    )
    first: uint80 = convert(phase, uint80) * PHASE
    return first + own_id, answer, started_at, updated_at, first + answered_in
