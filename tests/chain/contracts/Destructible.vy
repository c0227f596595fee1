# pragma version 0.4.3
"""
@title A contract that ends and leaves what it has to somebody
"""


@external
@payable
def __default__():
    pass


@external
def destroy(beneficiary: address):
    selfdestruct(beneficiary)
