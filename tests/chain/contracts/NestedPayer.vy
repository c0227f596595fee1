# pragma version 0.4.3
"""
@title Native value through calls within calls
@notice What a tracer has to tell apart: a payment at any depth, one that a revert further out undoes, a delegated call
        that seems to carry value, and a contract created with value.
"""

MAX_CALL_DATA: constant(uint256) = 260


@external
@payable
def pay_deep(receiver: address, depth: uint256):
    """
    @notice Passes the value on through `depth` more calls of this contract; the innermost one pays the receiver.
    """
    if depth == 0:
        raw_call(receiver, b"", value=msg.value)
    else:
        data: Bytes[MAX_CALL_DATA] = abi_encode(receiver, depth - 1, method_id=method_id("pay_deep(address,uint256)"))
        raw_call(self, data, value=msg.value)


@external
@payable
def pay_and_fail(receiver: address, depth: uint256):
    """
    @notice Pays through calls that go well, and then undoes it all.
    """
    data: Bytes[MAX_CALL_DATA] = abi_encode(receiver, depth, method_id=method_id("pay_deep(address,uint256)"))
    raw_call(self, data, value=msg.value)
    raise "nothing of this happened"


@external
@payable
def pay_one_of_two(undone: address, paid: address, depth: uint256):
    """
    @notice Half of the value to `undone`, by a call that fails and is caught; then the other half to `paid`. The first
            half stays here.
    """
    half: uint256 = msg.value // 2
    data: Bytes[MAX_CALL_DATA] = abi_encode(undone, depth, method_id=method_id("pay_and_fail(address,uint256)"))
    is_paid: bool = raw_call(self, data, value=half, revert_on_failure=False)
    assert not is_paid, "the inner call should have failed"
    data = abi_encode(paid, depth, method_id=method_id("pay_deep(address,uint256)"))
    raw_call(self, data, value=msg.value - half)


@external
@payable
def pay_by_delegate(library: address, receiver: address):
    """
    @notice Runs `pay_deep` of another NestedPayer as if it were ours: the delegated call moves nothing itself, though
            traces show the value on it too.
    """
    data: Bytes[MAX_CALL_DATA] = abi_encode(receiver, empty(uint256), method_id=method_id("pay_deep(address,uint256)"))
    raw_call(library, data, is_delegate_call=True)


@external
@payable
def create_with_value(template: address, salt: bytes32) -> address:
    """
    @notice A copy of the template's code, born with the value, at an address that the salt decides.
    """
    return create_copy_of(template, value=msg.value, salt=salt)
