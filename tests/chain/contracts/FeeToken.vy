# pragma version 0.4.3
"""
@title A token that keeps a part of every transfer and does not say so
@notice The event tells the whole amount; the receiver gets it less the fee. The fee goes to `sink`, or, where that is
        the zero address, out of the supply. TestToken is the one whose fee is an event of its own.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    amount: uint256


BASIS_POINTS: constant(uint256) = 10_000

name: public(String[64])
symbol: public(String[32])
decimals: public(uint8)
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
fee_basis_points: public(uint256)
sink: public(address)


@deploy
def __init__(
    name: String[64],
    symbol: String[32],
    decimals: uint8,
    initial_supply: uint256,
    fee_basis_points: uint256,
    sink: address,
):
    assert fee_basis_points < BASIS_POINTS, "fee is not a part"
    self.name = name
    self.symbol = symbol
    self.decimals = decimals
    self.fee_basis_points = fee_basis_points
    self.sink = sink
    self.totalSupply = initial_supply
    self.balanceOf[msg.sender] = initial_supply
    log Transfer(sender=empty(address), receiver=msg.sender, amount=initial_supply)


@external
def transfer(receiver: address, amount: uint256) -> bool:
    fee: uint256 = amount * self.fee_basis_points // BASIS_POINTS
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[receiver] += amount - fee
    if self.sink == empty(address):
        self.totalSupply -= fee
    else:
        self.balanceOf[self.sink] += fee
    log Transfer(sender=msg.sender, receiver=receiver, amount=amount)
    return True
