# pragma version 0.4.3
"""
@title A token of the time before ERC-20 was fixed
@notice `name` and `symbol` are bytes32 and `transfer` returns nothing, as in MKR and others of its age.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    amount: uint256


name: public(bytes32)
symbol: public(bytes32)
decimals: public(uint8)
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])


@deploy
def __init__(name: bytes32, symbol: bytes32, decimals: uint8, initial_supply: uint256):
    self.name = name
    self.symbol = symbol
    self.decimals = decimals
    self._mint(msg.sender, initial_supply)


@external
def transfer(receiver: address, amount: uint256):
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[receiver] += amount
    log Transfer(sender=msg.sender, receiver=receiver, amount=amount)


@external
def mint(receiver: address, amount: uint256):
    self._mint(receiver, amount)


@external
def burn(amount: uint256):
    self.balanceOf[msg.sender] -= amount
    self.totalSupply -= amount
    log Transfer(sender=msg.sender, receiver=empty(address), amount=amount)


@internal
def _mint(receiver: address, amount: uint256):
    self.totalSupply += amount
    self.balanceOf[receiver] += amount
    log Transfer(sender=empty(address), receiver=receiver, amount=amount)
