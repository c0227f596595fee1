# pragma version 0.4.3
"""
@title The part of Multicall3 that balances are read through
@notice ABI-compatible with the contract at 0xcA11bde05977b3631167028862bE2a173976CA11 for aggregate3, getEthBalance
        and getBlockNumber, within the sizes below.
"""

MAX_CALLS: constant(uint256) = 4096
MAX_CALL_DATA: constant(uint256) = 196
MAX_RETURN_DATA: constant(uint256) = 256


struct Call3:
    target: address
    allowFailure: bool
    callData: Bytes[MAX_CALL_DATA]


struct Result:
    success: bool
    returnData: Bytes[MAX_RETURN_DATA]


@external
@payable
def aggregate3(calls: DynArray[Call3, MAX_CALLS]) -> DynArray[Result, MAX_CALLS]:
    results: DynArray[Result, MAX_CALLS] = []
    for call: Call3 in calls:
        success: bool = False
        data: Bytes[MAX_RETURN_DATA] = b""
        success, data = raw_call(call.target, call.callData, max_outsize=MAX_RETURN_DATA, revert_on_failure=False)
        assert success or call.allowFailure, "Multicall3: call failed"
        results.append(Result(success=success, returnData=data))
    return results


@external
@view
def getEthBalance(holder: address) -> uint256:
    return holder.balance


@external
@view
def getBlockNumber() -> uint256:
    return block.number
