# pragma version 0.4.3
"""
@title An ERC-721 token
@notice Its Transfer event has the first topic of ERC-20's and four topics: the number is a token id, not an amount.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    token_id: indexed(uint256)


name: public(String[32])
symbol: public(String[16])
balanceOf: public(HashMap[address, uint256])
ownerOf: public(HashMap[uint256, address])


@deploy
def __init__(name: String[32], symbol: String[16]):
    self.name = name
    self.symbol = symbol


@external
@pure
def supportsInterface(interface_id: bytes4) -> bool:
    return interface_id in [0x01ffc9a7, 0x80ac58cd]


@external
def mint(receiver: address, token_id: uint256):
    assert self.ownerOf[token_id] == empty(address), "taken"
    self.ownerOf[token_id] = receiver
    self.balanceOf[receiver] += 1
    log Transfer(sender=empty(address), receiver=receiver, token_id=token_id)


@external
def transferFrom(sender: address, receiver: address, token_id: uint256):
    assert self.ownerOf[token_id] == sender and msg.sender == sender, "not the owner"
    self.ownerOf[token_id] = receiver
    self.balanceOf[sender] -= 1
    self.balanceOf[receiver] += 1
    log Transfer(sender=sender, receiver=receiver, token_id=token_id)
