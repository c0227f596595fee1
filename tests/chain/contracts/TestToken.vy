# pragma version 0.4.3
"""
@title An ERC-20 token whose behaviour tests choose
@notice Symbol, name, decimals, supply and an optional transfer fee are constructor arguments. Every balance change
        is in an event, but for those of `mint_silently`, which behaves as tokens that lie do.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    amount: uint256


event Approval:
    owner: indexed(address)
    spender: indexed(address)
    amount: uint256


BASIS_POINTS: constant(uint256) = 10_000

name: public(String[64])
symbol: public(String[32])
decimals: public(uint8)
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
fee_basis_points: public(uint256)
fee_collector: public(address)


@deploy
def __init__(
    name: String[64],
    symbol: String[32],
    decimals: uint8,
    initial_supply: uint256,
    fee_basis_points: uint256,
    fee_collector: address,
):
    assert fee_basis_points < BASIS_POINTS, "fee is not a part"
    self.name = name
    self.symbol = symbol
    self.decimals = decimals
    self.fee_basis_points = fee_basis_points
    self.fee_collector = fee_collector
    if initial_supply > 0:
        self._mint(msg.sender, initial_supply)


@external
def transfer(receiver: address, amount: uint256) -> bool:
    self._transfer(msg.sender, receiver, amount)
    return True


@external
def transferFrom(sender: address, receiver: address, amount: uint256) -> bool:
    self.allowance[sender][msg.sender] -= amount
    self._transfer(sender, receiver, amount)
    return True


@external
def approve(spender: address, amount: uint256) -> bool:
    self.allowance[msg.sender][spender] = amount
    log Approval(owner=msg.sender, spender=spender, amount=amount)
    return True


@external
def mint(receiver: address, amount: uint256):
    self._mint(receiver, amount)


@external
def burn(amount: uint256):
    self.balanceOf[msg.sender] -= amount
    self.totalSupply -= amount
    log Transfer(sender=msg.sender, receiver=empty(address), amount=amount)


@external
def mint_silently(receiver: address, amount: uint256, is_counted: bool):
    """
    @notice A balance from nowhere, without an event; `is_counted` says whether the supply tells of it.
    """
    self.balanceOf[receiver] += amount
    if is_counted:
        self.totalSupply += amount


@external
def emit_many(count: uint256, amount: uint256, first: uint256 = 0, holders: uint256 = max_value(uint256)):
    """
    @notice `count` real transfers of `amount` each from the caller, without fee, in one transaction. The receivers are
            holder_at(first), holder_at(first + 1), ..., wrapping round after `holders` of them.
    """
    self.balanceOf[msg.sender] -= count * amount
    for i: uint256 in range(count, bound=1_000_000):
        receiver: address = self._holder_at((first + i) % holders)
        self.balanceOf[receiver] += amount
        log Transfer(sender=msg.sender, receiver=receiver, amount=amount)


@external
@pure
def holder_at(index: uint256) -> address:
    return self._holder_at(index)


@internal
@pure
def _holder_at(index: uint256) -> address:
    return convert(convert(keccak256(convert(index, bytes32)), uint256) & convert(max_value(uint160), uint256), address)


@internal
def _mint(receiver: address, amount: uint256):
    self.totalSupply += amount
    self.balanceOf[receiver] += amount
    log Transfer(sender=empty(address), receiver=receiver, amount=amount)


@internal
def _transfer(sender: address, receiver: address, amount: uint256):
    assert receiver != empty(address), "transfer to the zero address"
    fee: uint256 = 0
    if self.fee_basis_points > 0:
        # Divided first, so that amounts near 2**256 do not overflow.
        fee = amount // BASIS_POINTS * self.fee_basis_points + amount % BASIS_POINTS * self.fee_basis_points // BASIS_POINTS
    self.balanceOf[sender] -= amount
    self.balanceOf[receiver] += amount - fee
    log Transfer(sender=sender, receiver=receiver, amount=amount - fee)
    if fee > 0:
        self.balanceOf[self.fee_collector] += fee
        log Transfer(sender=sender, receiver=self.fee_collector, amount=fee)
