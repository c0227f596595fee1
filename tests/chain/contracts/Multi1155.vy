# pragma version 0.4.3
"""
@title An ERC-1155 token
@notice It has amounts, but per token id and in an event of its own: a contract that is not fungible as a whole.
"""

event TransferSingle:
    operator: indexed(address)
    sender: indexed(address)
    receiver: indexed(address)
    token_id: uint256
    amount: uint256


balanceOf: public(HashMap[address, HashMap[uint256, uint256]])


@external
@pure
def supportsInterface(interface_id: bytes4) -> bool:
    return interface_id in [0x01ffc9a7, 0xd9b67a26]


@external
def mint(receiver: address, token_id: uint256, amount: uint256):
    self.balanceOf[receiver][token_id] += amount
    log TransferSingle(
        operator=msg.sender, sender=empty(address), receiver=receiver, token_id=token_id, amount=amount
    )
