# pragma version 0.4.3
"""
@title A token that credits without a word
@notice Its constructor gives the supply to its creator, its owner and itself, and `migrate` gives balances to whom it is
        told, all without an event. Transfers and `mint_for` are honest.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    amount: uint256


name: public(String[64])
symbol: public(String[32])
decimals: public(uint8)
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
owner: public(address)


@deploy
def __init__(name: String[64], symbol: String[32], decimals: uint8, initial_supply: uint256, owner: address):
    self.name = name
    self.symbol = symbol
    self.decimals = decimals
    self.totalSupply = initial_supply
    self.owner = owner
    self.balanceOf[owner] = 200
    self.balanceOf[self] = 30
    self.balanceOf[msg.sender] += initial_supply - 230


@external
def transfer(receiver: address, amount: uint256) -> bool:
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[receiver] += amount
    log Transfer(sender=msg.sender, receiver=receiver, amount=amount)
    return True


@external
def mint_for(receiver: address, amount: uint256):
    """
    @notice Whoever sends it is no party of the transfer.
    """
    self.totalSupply += amount
    self.balanceOf[receiver] += amount
    log Transfer(sender=empty(address), receiver=receiver, amount=amount)


@external
def migrate(holder: address, amount: uint256):
    self.totalSupply += amount
    self.balanceOf[holder] += amount
