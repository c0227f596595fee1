"""Addresses of networks of unspent outputs: the published test vectors, the networks' own forms, and output scripts."""

import re
import subprocess
import sys
from dataclasses import replace

import pytest
from embit import base58
from embit import bech32 as reference
from hypothesis import example, given
from hypothesis import strategies as st

from control.networks import bech32
from control.networks.addresses import InvalidAddress
from control.networks.families import codec_for
from control.networks.utxo import UtxoDefinition

BITCOIN = UtxoDefinition("0" * 64, 0, (5,), "bc", None)
TESTNET = UtxoDefinition("1" * 64, 111, (196,), "tb", None)
LITECOIN = UtxoDefinition("2" * 64, 48, (50, 5), "ltc", "ltcmweb")
REGTEST = UtxoDefinition("3" * 64, 111, (58, 196), "rltc", "tmweb")
NETWORKS = (BITCOIN, TESTNET, LITECOIN, REGTEST)

codec = codec_for("utxo")

# Source: BIP 350 (valid), with BIP 173's own that are still valid.
VALID_SEGWIT = {
    "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4": "0014751e76e8199196d454941c45d1b3a323f1433bd6",
    "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7": (
        "00201863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262"
    ),
    "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y": (
        "5128751e76e8199196d454941c45d1b3a323f1433bd6751e76e8199196d454941c45d1b3a323f1433bd6"
    ),
    "BC1SW50QGDZ25J": "6002751e",
    "bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs": "5210751e76e8199196d454941c45d1b3a323",
    "tb1qqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesrxh6hy": (
        "0020000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433"
    ),
    "tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c": (
        "5120000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433"
    ),
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0": (
        "512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
    ),
}

# Source: BIP 173 and BIP 350, which list an invalid prefix for these networks too (see another network below).
INVALID_SEGWIT = {
    # BIP 173
    "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5": "wrong checksum",
    "BC13W508D6QEJXTDG4Y5R3ZARVARY0C5XW7KN40WF2": "witness version 17",
    "bc1rw5uspcuh": "checksum of another encoding",
    "bc10w508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kw5rljs90": "checksum of another encoding",
    "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P": "16 bytes of data",
    "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sL5k7": "mixes upper and lower case",
    "bc1zw508d6qejxtdg4y5r3zarvaryvqyzf3du": "checksum of another encoding",
    "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3pjxtptv": "wrong padding",
    "bc1gmk9yu": "is too short",
    # BIP 173, valid before BIP 350
    "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7k7grplx": "checksum of another encoding",
    "BC1SW50QA3JX3S": "checksum of another encoding",
    "bc1zw508d6qejxtdg4y5r3zarvaryvg6kdaj": "checksum of another encoding",
    # BIP 350
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd": "witness version 1 needs bech32m",
    "tb1z0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqglt7rf": "witness version 2 needs bech32m",
    "BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL": "witness version 16 needs bech32m",
    "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh": "witness version 0 needs bech32",
    "tb1q0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq24jc47": "witness version 0 needs bech32",
    "bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4": "characters that are not allowed",
    "BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R": "witness version 17",
    "bc1pw5dgrnzv": "1 bytes of data",
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v8n0nx0muaewav253zgeav": "41 bytes of data",
    "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47Zagq": "mixes upper and lower case",
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf": "wrong padding",
    "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vpggkg4j": "wrong padding",
}

# Source: BIP 173 and BIP 350, strings that are valid in neither encoding.
INVALID_BECH32 = [
    "\x201nwldj5",
    "\x7f1axkwrx",
    "\x801eym55h",
    "an84characterslonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio1569pvx",
    "pzry9x0s0muk",
    "1pzry9x0s0muk",
    "x1b4n0q5v",
    "li1dgmt3",
    "de1lg7wt\xff",
    "A1G7SGD8",
    "10a06t8",
    "1qzzfhee",
    "\x201xj0phk",
    "\x7f1g6xzxy",
    "\x801vctc34",
    "an84characterslonghumanreadablepartthatcontainsthetheexcludedcharactersbioandnumber11d6pts4",
    "qyrz8wqd2c9m",
    "1qyrz8wqd2c9m",
    "y1b0jsk6g",
    "lt1igcx5c0",
    "in1muywd",
    "mm1crxm3i",
    "au1s5cgom",
    "M1VUXWEZ",
    "16plkw9",
    "1p2gdwpf",
]

# As Litecoin Core 0.21.2 shows these scripts on regtest.
SCRIPTS_OF_REGTEST = {
    "mh5CE8Nbj38iND267s4XnvhSmhDW7yWc6Q": "76a914" + 20 * "11" + "88ac",
    "QNAE3NaL6UaH2EdVpdQe6HGkQxZWWDoUK7": "a914" + 20 * "11" + "87",
    "rltc1qzyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3p937dx": "0014" + 20 * "11",
    "rltc1qzyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygszs6tp3": "0020" + 32 * "11",
    "rltc1pzyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygsg86zed": "5120" + 32 * "11",
    "rltc1sw50qh57rqy": "6002751e",
    "rltc1zzyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3xcsxkt": "5228" + 40 * "11",
    "rltc1pfees06p8ul": "51024e73",
}

WITHOUT_ADDRESS = {
    "empty": "",
    "bare key": "21" + 33 * "02" + "ac",
    "bare multisig": "5121" + 33 * "02" + "51ae",
    "data": "6a00",
    "data as long as a witness program": "6a14" + 20 * "11",
    "witness version 0 of another length": "0010" + 16 * "11",
    "witness program of one byte": "510111",
    "witness program of 41 bytes": "5129" + 41 * "11",
    "push of another length": "512011",
    "key hash without its end": "76a914" + 20 * "11" + "88",
    "script hash with another end": "a914" + 20 * "11" + "88",
    "negative number and program": "4f14" + 20 * "11",
}

hashes = st.binary(min_size=20, max_size=20)
key_hash_scripts = hashes.map(lambda hashed: bytes.fromhex("76a914") + hashed + bytes.fromhex("88ac"))
script_hash_scripts = hashes.map(lambda hashed: bytes.fromhex("a914") + hashed + bytes.fromhex("87"))
programs_of_version_0 = (hashes | st.binary(min_size=32, max_size=32)).map(
    lambda program: bytes((0, len(program))) + program
)
later_programs = st.tuples(
    st.sampled_from([version for version in range(1, 17) if version not in (8, 9)]),
    st.binary(min_size=2, max_size=40),
).map(lambda found: bytes((0x50 + found[0], len(found[1]))) + found[1])
scripts = key_hash_scripts | script_hash_scripts | programs_of_version_0 | later_programs
networks = st.sampled_from(NETWORKS)


@pytest.mark.parametrize(("text", "script"), VALID_SEGWIT.items())
def test_published_segwit_addresses_are_read(text: str, script: str) -> None:
    network = BITCOIN if text.lower().startswith("bc") else TESTNET
    stored = codec.parse(text)
    assert stored == text.lower() == codec.present(stored) == network.address(stored)
    assert network.script(stored).hex() == script
    assert network.address_of(bytes.fromhex(script)) == stored


@pytest.mark.parametrize(("text", "reason"), INVALID_SEGWIT.items())
def test_published_invalid_segwit_addresses_are_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidAddress, match=reason):
        codec.parse(text)


@pytest.mark.parametrize("text", INVALID_BECH32)
def test_published_invalid_strings_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(has|is|contains) "):
        bech32.decode(text)
    with pytest.raises(InvalidAddress) as caught:
        codec.parse(text)
    assert str(caught.value).isprintable()


@given(
    st.sampled_from(["bc", "ltc", "x1y", "~"]), st.integers(0, 16), st.binary(min_size=2, max_size=40), st.integers(0)
)
def test_segwit_addresses_equal_the_librarys(prefix: str, version: int, program: bytes, place: int) -> None:
    if version == 0:
        program = program.ljust(20, b"\0")[:20]
    address = bech32.encode(prefix, version, program)
    assert address == reference.encode(prefix, version, program)
    assert bech32.decode(address) == bech32.decode(address.upper()) == (prefix, version, program)
    position = len(prefix) + 1 + place % (len(address) - len(prefix) - 1)
    other = bech32.CHARACTERS[(bech32.CHARACTERS.index(address[position]) + 1) % 32]
    with pytest.raises(ValueError, match="wrong checksum"):
        bech32.decode(address[:position] + other + address[position + 1 :])


@pytest.mark.parametrize(
    ("address", "network", "script"),
    [
        # The outputs of well-known transactions, and BIP 16's example. Source: https://en.bitcoin.it/wiki/Address
        ("1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", BITCOIN, "76a91477bff20c60e522dfaa3350c39b030a5d004e839a88ac"),
        ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", BITCOIN, "76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac"),
        ("3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy", BITCOIN, "a914b472a266d0bd89c13706a4132ccfb16f7c3b9fcb87"),
        ("1111111111111111111114oLvT2", BITCOIN, "76a914" + 20 * "00" + "88ac"),
    ],
)
def test_base58_addresses_are_read(address: str, network: UtxoDefinition, script: str) -> None:
    assert codec.parse(address) == network.address(address) == address
    assert network.script(address).hex() == script
    assert network.address_of(bytes.fromhex(script)) == address


@given(st.integers(0, 255), hashes, st.integers(0, 34), st.sampled_from(base58.B58_DIGITS))
def test_any_prefix_has_a_checksum(prefix: int, hashed: bytes, place: int, other: str) -> None:
    text = base58.encode_check(bytes((prefix,)) + hashed)
    assert codec.parse(text) == text
    changed = text[: place % len(text)] + other + text[place % len(text) + 1 :]
    if changed != text:
        with pytest.raises(InvalidAddress):
            codec.parse(changed)


@pytest.mark.parametrize("length", [0, 19, 21, 22, 33])
def test_base58_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(InvalidAddress):
        codec.parse(base58.encode_check(bytes((5,)) + bytes(length)))


@pytest.mark.parametrize(("address", "script"), SCRIPTS_OF_REGTEST.items())
def test_addresses_are_those_of_a_node(address: str, script: str) -> None:
    assert REGTEST.script(codec.parse(address)).hex() == script
    assert REGTEST.address_of(bytes.fromhex(script)) == address


@given(networks, scripts)
@example(BITCOIN, bytes.fromhex("76a914" + 20 * "00" + "88ac"))
def test_script_and_address_are_inverse(network: UtxoDefinition, script: bytes) -> None:
    address = network.address_of(script)
    assert address is not None
    assert network.script(address) == script
    assert codec.parse(address) == network.address(address) == address


@given(networks, st.binary(max_size=45))
def test_other_scripts_have_no_address_or_an_exact_one(network: UtxoDefinition, script: bytes) -> None:
    address = network.address_of(script)
    assert address is None or network.script(address) == script


@pytest.mark.parametrize("script", WITHOUT_ADDRESS.values(), ids=WITHOUT_ADDRESS.keys())
def test_scripts_without_an_address(script: str) -> None:
    for network in NETWORKS:
        assert network.address_of(bytes.fromhex(script)) is None


@given(hashes)
def test_old_script_address_becomes_the_canonical_one(hashed: bytes) -> None:
    old, new = (base58.encode_check(bytes((prefix,)) + hashed) for prefix in (5, 50))
    assert (old[0], new[0]) == ("3", "M")
    assert LITECOIN.address(codec.parse(old)) == LITECOIN.address(new) == new
    assert LITECOIN.script(old) == LITECOIN.script(new)
    assert BITCOIN.address(old) == old


def test_old_script_address_of_a_published_example() -> None:
    """Source: https://developers.bitgo.com/coins/litecoin"""
    assert LITECOIN.address("3GBygsGPvTdfKMbq4AKZZRu1sPMWPEsBfd") == "MNQ7zkgMsaV67rsjA3JuP59RC5wxRXpwgE"


@given(networks, networks, scripts)
def test_address_of_another_network_is_refused(network: UtxoDefinition, other: UtxoDefinition, script: bytes) -> None:
    address = other.address_of(script)
    assert address is not None
    if network.segwit_prefix != other.segwit_prefix and address.startswith(f"{other.segwit_prefix}1"):
        with pytest.raises(InvalidAddress, match="belongs to another network"):
            network.address(address)


@pytest.mark.parametrize(
    ("network", "address", "expected"),
    [
        (BITCOIN, "QNAE3NaL6UaH2EdVpdQe6HGkQxZWWDoUK7", "begin with 1, 3 or bc1"),
        (LITECOIN, "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", "begin with L, M, 3 or ltc1"),
        (TESTNET, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "begin with m, n, 2 or tb1"),
        (REGTEST, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "begin with m, n, Q, 2 or rltc1"),
        # Published as an invalid prefix by BIP 173 and BIP 350.
        (BITCOIN, "tc1qw508d6qejxtdg4y5r3zarvary0c5xw7kg3g4ty", "belongs to another network"),
        (BITCOIN, "tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut", "belongs to another network"),
    ],
)
def test_prefixes_of_the_network_are_named(network: UtxoDefinition, address: str, expected: str) -> None:
    stored = codec.parse(address)
    for read in (network.address, network.script):
        with pytest.raises(InvalidAddress, match=expected):
            read(stored)


@pytest.mark.parametrize("version", [8, 9])
@given(program=st.binary(min_size=2, max_size=40))
def test_witness_versions_of_mweb_have_no_address(version: int, program: bytes) -> None:
    script = bytes((0x50 + version, len(program))) + program
    assert LITECOIN.address_of(script) is None
    with pytest.raises(InvalidAddress, match=f"witness version {version}, which this network reserves for MWEB"):
        LITECOIN.address(bech32.encode("ltc", version, program))
    without = replace(LITECOIN, mweb_prefix=None)
    address = without.address_of(script)
    assert address is not None
    assert without.script(address) == script


@pytest.mark.parametrize("prefix", ["ltcmweb", "tmweb", "TMWEB"])
def test_mweb_addresses_are_refused_with_the_reason(prefix: str) -> None:
    for text in (f"{prefix}1{'q' * 113}", f"{prefix}1qqqqqqqq"):
        with pytest.raises(InvalidAddress, match="MWEB addresses are not supported because their outputs are hidden"):
            codec.parse(text)
    with pytest.raises(InvalidAddress, match="MWEB addresses are not supported"):
        LITECOIN.address(bech32.encode("ltcmweb", 0, bytes(20)))


@given(st.text(max_size=95) | st.from_regex(codec.pattern, fullmatch=True))
def test_parsed_texts_have_the_documented_pattern(text: str) -> None:
    try:
        stored = codec.parse(text)
    except InvalidAddress:
        return
    assert re.fullmatch(codec.pattern, text)
    assert codec.parse(stored) == stored


@pytest.mark.parametrize("text", ["", "native", "1" * 33, "x" * 5000, "0x" + "1" * 40, " bc1", "bc1\n", "\uff11" * 30])
def test_malformed_texts_are_refused_with_a_short_reason(text: str) -> None:
    with pytest.raises(InvalidAddress) as caught:
        codec.parse(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


# Source: BIP 32, BIP 380 and SLIP-132.
@pytest.mark.parametrize(
    "key",
    [
        "5KYZdUEo39z3FPrtuX2QbbwGnNP5zTd7yyr2SC1j299sBCnWjss",
        "L4rK1yDtCWekvXuE6oXD9jCYfFNV2cWRpVuPLBcCU2z8TrisoyY1",
        "xprvA1RpRA33e1JQ7ifknakTFpgNXPmW2YvmhqLQYMmrj4xJXXWYpDPS3xz7iAxn8L39njGVyuoseXzU6rcxFLJ8HFsTjSyQbLYnMpCqE2VbFWc",
        "zprvAdG4iTXWBoARxkkzNpNh8r6Qag3irQB8PzEMkAFeTRXxHpbF9z4QgEvBRmfvqWvGp42t42nvgGpNgYSJA9iefm1yYNZKEm7z6qUWCroSQnE",
    ],
)
def test_private_key_in_place_of_an_address_is_not_repeated(key: str) -> None:
    for text in (key, f"{key[:-1]}{'1' if key[-1] != '1' else '2'}", f"my key: {key}"):
        with pytest.raises(InvalidAddress, match="contains a private key, which is not needed") as caught:
            codec.parse(text)
        assert key[:8] not in str(caught.value)


def test_no_text_is_an_address_of_two_families() -> None:
    for address in (*VALID_SEGWIT, *SCRIPTS_OF_REGTEST, "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"):
        with pytest.raises(InvalidAddress):
            codec_for("evm").parse(address)
    with pytest.raises(InvalidAddress):
        codec.parse("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48")


def test_codec_loads_no_native_library() -> None:
    """`embit.misc`, which other modules of the library import, loads one."""
    code = "import sys, control.networks.utxo; print('embit.misc' in sys.modules, 'embit.bech32' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "False False\n"
