# pragma version 0.4.3
"""
@title Internal native transfers
@notice Value that reaches wallets inside a transaction sent to another address, which no log tells of.
"""

MAX_RECEIVERS: constant(uint256) = 100


@external
@payable
def split(receivers: DynArray[address, MAX_RECEIVERS]):
    """
    @notice Passes an equal part of the value to each receiver; what does not divide stays here.
    """
    self._split(receivers, msg.value)


@external
@payable
def split_and_revert(receivers: DynArray[address, MAX_RECEIVERS]):
    self._split(receivers, msg.value)
    raise "nothing of this happened"


@external
@payable
def attempt_split(receivers: DynArray[address, MAX_RECEIVERS]) -> bool:
    """
    @notice Succeeds around an inner call whose transfers are all undone: a trace shows them without an error of
            their own. The value stays here.
    """
    data: Bytes[MAX_RECEIVERS * 32 + 68] = abi_encode(
        receivers, method_id=method_id("split_and_revert(address[])")
    )
    return raw_call(self, data, value=msg.value, revert_on_failure=False)


@internal
def _split(receivers: DynArray[address, MAX_RECEIVERS], total: uint256):
    part: uint256 = total // len(receivers)
    for receiver: address in receivers:
        raw_call(receiver, b"", value=part)
