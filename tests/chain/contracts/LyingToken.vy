# pragma version 0.4.3
"""
@title A token whose events and balances go separate ways when told to
@notice Transfers are honest. `mint_silently` and `burn_silently` change a balance without an event, and
        `emit_falsely` emits a Transfer that moves nothing.
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


@deploy
def __init__(name: String[64], symbol: String[32], decimals: uint8, initial_supply: uint256):
    self.name = name
    self.symbol = symbol
    self.decimals = decimals
    self.totalSupply = initial_supply
    self.balanceOf[msg.sender] = initial_supply
    log Transfer(sender=empty(address), receiver=msg.sender, amount=initial_supply)


@external
def transfer(receiver: address, amount: uint256) -> bool:
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[receiver] += amount
    log Transfer(sender=msg.sender, receiver=receiver, amount=amount)
    return True


@external
def mint_silently(receiver: address, amount: uint256, is_counted: bool):
    """
    @notice A balance from nowhere; `is_counted` says whether the supply tells of it.
    """
    self.balanceOf[receiver] += amount
    if is_counted:
        self.totalSupply += amount


@external
def burn_silently(holder: address, amount: uint256, is_counted: bool):
    self.balanceOf[holder] -= amount
    if is_counted:
        self.totalSupply -= amount


@external
def emit_falsely(sender: address, receiver: address, amount: uint256):
    log Transfer(sender=sender, receiver=receiver, amount=amount)
