# pragma version 0.4.3
"""
@title A token that says little about itself
@notice No `decimals`, no `name`, and `symbol` reverts.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    amount: uint256


totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])


@deploy
def __init__(initial_supply: uint256):
    self.totalSupply = initial_supply
    self.balanceOf[msg.sender] = initial_supply
    log Transfer(sender=empty(address), receiver=msg.sender, amount=initial_supply)


@external
@view
def symbol() -> String[32]:
    raise "no symbol"


@external
def transfer(receiver: address, amount: uint256) -> bool:
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[receiver] += amount
    log Transfer(sender=msg.sender, receiver=receiver, amount=amount)
    return True
