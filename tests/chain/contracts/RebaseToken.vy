# pragma version 0.4.3
"""
@title A token whose balances change without events
@notice A balance is shares x index. `rebase` sets the index and says nothing; a transfer moves whole shares, so that
        what arrives can be a few units less than what the event says.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    amount: uint256


UNIT: constant(uint256) = 10 ** 18

name: public(String[64])
symbol: public(String[32])
decimals: public(uint8)
index: public(uint256)
total_shares: public(uint256)
shares_of: public(HashMap[address, uint256])


@deploy
def __init__(name: String[64], symbol: String[32], decimals: uint8, initial_supply: uint256):
    self.name = name
    self.symbol = symbol
    self.decimals = decimals
    self.index = UNIT
    self.total_shares = initial_supply
    self.shares_of[msg.sender] = initial_supply
    log Transfer(sender=empty(address), receiver=msg.sender, amount=initial_supply)


@external
@view
def totalSupply() -> uint256:
    return self.total_shares * self.index // UNIT


@external
@view
def balanceOf(holder: address) -> uint256:
    return self.shares_of[holder] * self.index // UNIT


@external
def transfer(receiver: address, amount: uint256) -> bool:
    shares: uint256 = amount * UNIT // self.index
    self.shares_of[msg.sender] -= shares
    self.shares_of[receiver] += shares
    log Transfer(sender=msg.sender, receiver=receiver, amount=amount)
    return True


@external
def rebase(index: uint256):
    self.index = index
