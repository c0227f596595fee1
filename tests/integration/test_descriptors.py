"""Wallets of keys against a real node: checksums, canonical texts and addresses of every form."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from embit import bip32
from embit.ec import PrivateKey

from control.networks.addresses import InvalidAddress
from control.networks.descriptors import parse_keys
from control.networks.utxo import UtxoDefinition
from tests.chain.node import NodeError
from tests.chain.utxo_node import UtxoNode

TPUB, TPRV = bytes.fromhex("043587cf"), bytes.fromhex("04358394")
REGTEST = UtxoDefinition("3" * 64, 111, (58, 196), "rltc", "tmweb", (TPUB,))
INDICES = (0, 1, 19, 1_000, 2**31 - 2)
SINGLE = ("pkh({})", "wpkh({})", "sh(wpkh({}))")
MULTISIG = tuple(
    outer.format(f"{name}({{}},{{}})")
    for outer in ("sh({})", "wsh({})", "sh(wsh({}))")
    for name in ("multi", "sortedmulti")
)


@pytest.fixture(scope="module")
def node() -> Iterator[UtxoNode]:
    with UtxoNode() as running:
        yield running


@dataclass(frozen=True)
class Keys:
    """Random keys from a fixed seed."""

    chosen: random.Random

    def extended(self) -> bip32.HDKey:
        """Return an extended private key of depth 3, as wallets derive for an account."""
        return bip32.HDKey.from_seed(self.chosen.randbytes(32), version=TPRV).derive("m/84h/1h/0h")

    def text(self, path: str) -> str:
        """Return an extended public key with an origin and a path."""
        origin = self.chosen.choice(["", "[d34db33f]", "[d34db33f/84'/1h/0']"])
        return f"{origin}{self.extended().to_public().to_base58()}{path}"

    def single(self, *, is_compressed: bool = True) -> str:
        """Return a public key, hexadecimal."""
        key = PrivateKey(self.chosen.randbytes(32), compressed=is_compressed)
        return str(key.get_public_key().sec().hex())


def compare(node: UtxoNode, text: str, branches: tuple[str, ...]) -> None:
    """Compare a wallet with the node's addresses of the descriptor of each branch, which have no multipath."""
    wallet = parse_keys(text, REGTEST)
    assert wallet.branches == len(branches)
    body = wallet.descriptor.split("#")[0]
    if wallet.branches == 1:
        info = node.rpc("getdescriptorinfo", body)
        assert info["descriptor"] == wallet.descriptor
        assert info["isrange"] == wallet.is_ranged
    for branch, single in enumerate(branches):
        checked = node.rpc("getdescriptorinfo", single)["descriptor"]
        if not wallet.is_ranged:
            assert node.rpc("deriveaddresses", checked) == [wallet.address(branch, 0)]
            continue
        for index in INDICES:
            assert node.rpc("deriveaddresses", checked, [index, index]) == [wallet.address(branch, index)]


@pytest.mark.parametrize("form", SINGLE)
def test_addresses_of_single_keys_equal_the_nodes(node: UtxoNode, form: str) -> None:
    keys = Keys(random.Random(form))
    for path in ("", "/0", "/*", "/0/*", "/2147483647/3/*"):
        text = form.format(keys.text(path))
        compare(node, text, (text,))
    key = keys.text("")
    compare(node, form.format(f"{key}/<0;1>/*"), (form.format(f"{key}/0/*"), form.format(f"{key}/1/*")))
    compare(node, form.format(f"{key}/7/<5;2>"), (form.format(f"{key}/7/5"), form.format(f"{key}/7/2")))
    single = form.format(keys.single())
    compare(node, single, (single,))


@pytest.mark.proof("addresses of keys equal those of a real node")
def test_addresses_of_a_range_equal_the_nodes(node: UtxoNode) -> None:
    key = Keys(random.Random("range")).text("")
    wallet = parse_keys(f"wpkh({key}/<0;1>/*)", REGTEST)
    for branch in (0, 1):
        checked = node.rpc("getdescriptorinfo", f"wpkh({key}/{branch}/*)")["descriptor"]
        assert node.rpc("deriveaddresses", checked, [0, 999]) == [
            wallet.address(branch, index) for index in range(1_000)
        ]


@pytest.mark.parametrize("form", MULTISIG)
def test_addresses_of_multisig_equal_the_nodes(node: UtxoNode, form: str) -> None:
    keys = Keys(random.Random(form))
    for threshold, count in ((1, 1), (2, 3), (15, 15)):
        members = [keys.text(keys.chosen.choice(["", "/*", "/1/*"])) for _ in range(count - 1)] + [keys.single()]
        text = form.format(threshold, ",".join(members))
        wallet = parse_keys(text, REGTEST)
        if "sorted" in form:
            # The node keeps the order of the text, so the canonical one is compared.
            compare(node, wallet.descriptor, (text,))
        else:
            compare(node, text, (text,))
    texts = [keys.text("") for _ in range(3)]
    multipath, *branches = (
        form.format(2, ",".join(f"{text}{step}/*" for text in texts)) for step in ("/<0;1>", "/0", "/1")
    )
    compare(node, multipath, tuple(branches))


@pytest.mark.parametrize("form", ["pkh({})", "sh(multi(1,{}))", "sh(sortedmulti(1,{}))"])
def test_addresses_of_uncompressed_keys_equal_the_nodes(node: UtxoNode, form: str) -> None:
    text = form.format(Keys(random.Random(form)).single(is_compressed=False))
    compare(node, text, (text,))


@pytest.mark.parametrize(
    "text",
    [
        "wpkh({key}/*",
        "wpkh({key}/*h)",
        "wpkh({key}/0h/*)",
        "wpkh({key}/2147483648)",
        "wpkh({key},{key})",
        "wpkh({uncompressed})",
        "wsh(multi(1,{uncompressed}))",
        "sh(multi(2,{key}))",
        "sh(multi(0,{key}))",
        "sh(multi(1{sixteen}))",
        "wsh(wpkh({key}))",
        "sh(sh(wpkh({key})))",
        "wpkh([d34db33/0]{key})",
        "wpkh([d34db33f/0x]{key})",
        "wpkh(02ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff)",
        "wpkh({mainnet})",
        "wpkh({key})#qqqqqqqq",
    ],
)
def test_texts_that_the_node_refuses_are_refused(node: UtxoNode, text: str) -> None:
    keys = Keys(random.Random(1))
    key = keys.text("")
    filled = text.format(
        key=key,
        uncompressed=keys.single(is_compressed=False),
        sixteen=f",{keys.single()}" * 16,
        mainnet=keys.extended().to_public(version=bytes.fromhex("0488b21e")).to_base58(),
    )
    with pytest.raises(NodeError):
        # It parses private parts too late for `getdescriptorinfo` to refuse a hardened step.
        node.rpc(
            "deriveaddresses", node.rpc("getdescriptorinfo", filled)["descriptor"], *([[0, 0]] if "*" in text else [])
        )
    with pytest.raises(InvalidAddress):
        parse_keys(filled, REGTEST)
