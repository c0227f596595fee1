"""Payments into and out of MWEB, Litecoin's extension block for confidential amounts.

Since its activation, each block ends with a transaction that moves the extension's whole value. Its first output holds
that value and has no address. Its other outputs are payments out of the extension.
"""

from tests.chain.utxo_node import UtxoNode

ACTIVATION_HEIGHT = 432


class MwebTraffic:
    """A wallet of the node with coins outside and inside the extension. MWEB is active afterwards.

    Blocks are mined from the mempool alone: blocks made by hand lack the extension.

    Args:
        node: a node with `mweb=True` and an empty chain.
    """

    def __init__(self, node: UtxoNode) -> None:
        self.node = node
        node.rpc("createwallet", "mweb")
        self.address = str(node.rpc("getnewaddress"))
        self._inside = str(node.rpc("getnewaddress", "", "mweb"))
        node.mine(self.address, ACTIVATION_HEIGHT - 1)
        self.pay_in("20")
        node.mine(self.address)

    def pay_in(self, coins: str) -> str:
        """Send coins into the extension with the next block; returns the transaction's id."""
        return str(self.node.rpc("sendtoaddress", self._inside, coins))

    def pay_out(self, address: str, coins: str) -> None:
        """Send coins from the extension to an address with the next block. No transaction of its own shows them."""
        outside = [
            {"txid": coin["txid"], "vout": coin["vout"]} for coin in self.node.rpc("listunspent") if "vout" in coin
        ]
        # The wallet chooses among all coins that are not locked.
        self.node.rpc("lockunspent", False, outside)
        self.node.rpc("sendtoaddress", address, coins)
        self.node.rpc("lockunspent", True, outside)
