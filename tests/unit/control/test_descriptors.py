"""Wallets of keys: the published test vectors, refusals, and the identity of wallets in any spelling."""

import hashlib
from collections.abc import Sequence

import pytest
from embit import base58, bip32
from embit.descriptor import Descriptor
from embit.ec import PrivateKey
from embit.util import secp256k1
from hypothesis import given
from hypothesis import strategies as st

from control.networks.addresses import InvalidAddress
from control.networks.descriptors import GAP, LONGEST, SCAN_RANGE, WalletKeys, next_range, parse_keys
from control.networks.families import codec_for
from control.networks.utxo import UtxoDefinition

XPUB, TPUB, LTUB, TTUB = map(bytes.fromhex, ("0488b21e", "043587cf", "019da462", "0436f6e1"))
BITCOIN = UtxoDefinition("0" * 64, 0, (5,), "bc", None)
TESTNET = UtxoDefinition("1" * 64, 111, (196,), "tb", None, (TPUB,))
LITECOIN = UtxoDefinition("2" * 64, 48, (50, 5), "ltc", "ltcmweb", (XPUB, LTUB))
REGTEST = UtxoDefinition("3" * 64, 111, (58, 196), "rltc", "tmweb", (TPUB, TTUB))

# Keys of the test vectors of BIP 32 and BIP 380 to 389.
A = "xpub6ERApfZwUNrhLCkDtcHTcxd75RbzS1ed54G1LkBUHQVHQKqhMkhgbmJbZRkrgZw4koxb5JaHWkY4ALHY2grBGRjaDMzQLcgJvLJuZZvRcEL"
B = "xpub68NZiKmJWnxxS6aaHmn81bvJeTESw724CRDs6HbuccFQN9Ku14VQrADWgqbhhTHBaohPX4CjNLf9fq9MYo6oDaPPLPxSb7gwQN3ih19Zm4Y"
C = "xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH"
D = "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB"
F = "xpub661MyMwAqRbcFboagG9uopGnjiB9ZchSgFqsv3dZjC55gM8zs96LAQauuYVdCB6KTpGUdD3JBcVeGZxaz2gLnMpnbS5NV5tvPLheUuY4rUZ"
E = "xpub661MyMwAqRbcGDZQUKLqmWodYLcoBQnQH33yYkkF3jjxeLvY8qr2wWGEWkiKFaaQfJCoi3HeEq3Dc5DptfbCyjD38fNhSqtKc1UHaP4ba3t"
COMPRESSED = "03a34b99f22c790c4e36b2b3c2c35a36db06226e41c692fc82b8b56ac1c540c5bd"
UNCOMPRESSED = (
    "04a34b99f22c790c4e36b2b3c2c35a36db06226e41c692fc82b8b56ac1c540c5bd5b8dec5235a0fa8722476c7709c02559e3aa73aa03918ba2d492"
    "eea75abea235"
)
SIXTEEN = (
    "03669b8afcec803a0d323e9a17f3ea8e68e8abe5a278020a929adbec52421adbd0",
    "0260b2003c386519fc9eadf2b5cf124dd8eea4c4e68d5e154050a9346ea98ce600",
    "0362a74e399c39ed5593852a30147f2959b56bb827dfa3e60e464b02ccf87dc5e8",
    "0261345b53de74a4d721ef877c255429961b7e43714171ac06168d7e08c542a8b8",
    "02da72e8b46901a65d4374fe6315538d8f368557dda3a1dcf9ea903f3afe7314c8",
    "0318c82dd0b53fd3a932d16e0ba9e278fcc937c582d5781be626ff16e201f72286",
    "0297ccef1ef99f9d73dec9ad37476ddb232f1238aff877af19e72ba04493361009",
    "02e502cfd5c3f972fe9a3e2a18827820638f96b6f347e54d63deb839011fd5765d",
    "03e687710f0e3ebe81c1037074da939d409c0025f17eb86adb9427d28f0f7ae0e9",
    "02c04d3a5274952acdbc76987f3184b346a483d43be40874624b29e3692c1df5af",
    "02ed06e0f418b5b43a7ec01d1d7d27290fa15f75771cb69b642a51471c29c84acd",
    "036d46073cbb9ffee90473f3da429abc8de7f8751199da44485682a989a4bebb24",
    "02f5d1ff7c9029a80a4e36b9a5497027ef7f3e73384a4a94fbfe7c4e9164eec8bc",
    "02e41deffd1b7cce11cde209a781adcffdabd1b91c0ba0375857a2bfd9302419f3",
    "02d76625f7956a7fc505ab02556c23ee72d832f1bac391bcd2d3abce5710a13d06",
    "0399eb0a5487515802dc14544cf10b3666623762fbed2ec38a3975716e2c29c232",
)

# Source: BIP 381, 382 and 383, without private keys: the scripts of index 0, 1, and so on.
SCRIPTS = {
    f"pkh([deadbeef/1/2'/3/4']{COMPRESSED})": ["76a9149a1c78a507689f6f54b847ad1cef1e614ee23f1e88ac"],
    f"pkh([deadbeef/1/2h/3/4h]{COMPRESSED})": ["76a9149a1c78a507689f6f54b847ad1cef1e614ee23f1e88ac"],
    f"pkh({UNCOMPRESSED})": ["76a914b5bd079c4d57cc7fc28ecf8213a6b791625b818388ac"],
    "pkh([bd16bee5/2147483647h]xpub69H7F5dQzmVd3vPuLKtcXJziMEQByuDidnX3YdwgtNsecY5HRGtAAQC5mXTt4dsv9RzyjgDjAQs9VGVV6ydYCHn"
    "prc9vvaA5YtqWyL6hyds/0)": ["76a914ebdc90806a9c4356c1c88e42216611e1cb4c1c1788ac"],
    f"wpkh({COMPRESSED})": ["00149a1c78a507689f6f54b847ad1cef1e614ee23f1e"],
    f"wpkh([ffffffff/13']{C}/1/2/*)": [
        "0014326b2249e3a25d5dc60935f044ee835d090ba859",
        "0014af0bd98abc2f2cae66e36896a39ffe2d32984fb7",
        "00141fa798efd1cbf95cebf912c031b8a4a6e9fb9f27",
    ],
    f"sh(multi(2,[00000000/111'/222]{A},{B}/0))": ["a91445a9a622a8b0a1269944be477640eedc447bbd8487"],
    f"sh(wsh(multi(16,{','.join(SIXTEEN)})))": ["a9147fc63e13dc25e8a95a3cee3d9a714ac3afd96f1e87"],
}
# Source: BIP 383, the script inside of a descriptor.
WITNESS_SCRIPTS = [
    "5221025d5fc65ebb8d44a5274b53bac21ff8307fec2334a32df05553459f8b1f7fe1b62102fbd47cc8034098f0e6a94c6aeee8528abf0a2153a5d8"
    "e46d325b7284c046784652ae",
    "52210264fd4d1f5dea8ded94c61e9641309349b62f27fbffe807291f664e286bfbe6472103f4ece6dfccfa37b211eb3d0af4d0c61dba9ef698622d"
    "c17eecdf764beeb005a652ae",
    "5221022ccabda84c30bad578b13c89eb3b9544ce149787e5b538175b1d1ba259cbb83321024d902e1a2fc7a8755ab5b694c575fce742c48d9ff192"
    "e63df5193e4c7afe1f9c52ae",
]

# Source: BIP 32, test vectors 1 and 2: parent, index, child.
CHILDREN = [
    (
        "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw",
        1,
        "xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqck2AxYysAA7xmALppuCkwQ",
    ),
    (
        "xpub6D4BDPcP2GT577Vvch3R8wDkScZWzQzMMUm3PWbmWvVJrZwQY4VUNgqFJPMM3No2dFDFGTsxxpG5uJh7n7epu4trkrX7x7DogT5Uv6fcLW5",
        2,
        "xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV",
    ),
    (
        "xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV",
        1_000_000_000,
        "xpub6H1LXWLaKsWFhvm6RVpEL9P4KfRZSW7abD2ttkWP3SSQvnyA8FSVqNTEcYFgJS2UaFcxupHiYkro49S8yGasTvXEYBVPamhGW6cFJodrTHy",
    ),
    (D, 0, C),
    (
        "xpub6ASAVgeehLbnwdqV6UKMHVzgqAG8Gr6riv3Fxxpj8ksbH9ebxaEyBLZ85ySDhKiLDBrQSARLq1uNRts8RuJiHjaDMBU4Zn9h8LZNnBC5y4a",
        1,
        "xpub6DF8uhdarytz3FWdA8TvFSvvAh8dP3283MY7p2V4SeE2wyWmG5mg5EwVvmdMVCQcoNJxGoWaU9DCWh89LojfZ537wTfunKau47EL2dhHKon",
    ),
    (
        A,
        2,
        "xpub6FnCn6nSzZAw5Tw7cgR9bi15UV96gLZhjDstkXXxvCLsUXBGXPdSnLFbdpq8p9HmGsApME5hQTZ3emM2rnY5agb9rXpVGyy3bdW6EEgAtqt",
    ),
]

# Source: SLIP-132: key, first address.
VERSIONS = {
    "xpub6BosfCnifzxcFwrSzQiqu2DBVTshkCXacvNsWGYJVVhhawA7d4R5WSWGFNbi8Aw6ZRc1brxMyWMzG3DSSSSoekkudhUd9yLb6qx39T9nMdj": (
        "1LqBGSKuX5yYUonjxT5qGfpUsXKYYWeabA"
    ),
    "ypub6Ww3ibxVfGzLrAH1PNcjyAWenMTbbAosGNB6VvmSEgytSER9azLDWCxoJwW7Ke7icmizBMXrzBx9979FfaHxHcrArf3zbeJJJUZPf663zsP": (
        "37VucYSaXLCAsxYyAPfbSi9eh4iEcbShgf"
    ),
    "zpub6rFR7y4Q2AijBEqTUquhVz398htDFrtymD9xYYfG1m4wAcvPhXNfE3EfH1r1ADqtfSdVCToUG868RvUUkgDKf31mGDtKsAYz2oz2AGutZYs": (
        "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"
    ),
}

# Source: BIP 32, BIP 380 and SLIP-132.
PRIVATE_KEYS = [
    "5KYZdUEo39z3FPrtuX2QbbwGnNP5zTd7yyr2SC1j299sBCnWjss",
    "L4rK1yDtCWekvXuE6oXD9jCYfFNV2cWRpVuPLBcCU2z8TrisoyY1",
    "xprvA1RpRA33e1JQ7ifknakTFpgNXPmW2YvmhqLQYMmrj4xJXXWYpDPS3xz7iAxn8L39njGVyuoseXzU6rcxFLJ8HFsTjSyQbLYnMpCqE2VbFWc",
    "yprvAHwhK6RbpuS3dgCYHM5jc2ZvEKd7Bi61u9FVhYMpgMSuZS613T1xxQeKTffhrHY79hZ5PsskBjcc6C2V7DrnsMsNaGDaWev3GLRQRgV7hxF",
    "zprvAdG4iTXWBoARxkkzNpNh8r6Qag3irQB8PzEMkAFeTRXxHpbF9z4QgEvBRmfvqWvGp42t42nvgGpNgYSJA9iefm1yYNZKEm7z6qUWCroSQnE",
]

# Source: the invalid test vectors of BIP 380 (with public keys), 381, 382, 383 and 389, and others.
INVALID = {
    # BIP 380
    f"pkh([deadbeef/0h/0h/0h/*]{COMPRESSED})": "origin of a key must be 8 hexadecimal digits",
    f"pkh([deadbeef/0h/0h/0h/]{COMPRESSED})": "origin of a key must be 8 hexadecimal digits",
    f"pkh([deadbef/0h/0h/0h]{COMPRESSED})": "origin of a key must be 8 hexadecimal digits",
    f"pkh([deadbeeef/0h/0h/0h]{COMPRESSED})": "origin of a key must be 8 hexadecimal digits",
    f"pkh([deadbeef/0f/0f/0f]{COMPRESSED})": "origin of a key must be 8 hexadecimal digits",
    f"pkh([deadbeef/0H/0H/0H]{COMPRESSED})": "origin of a key must be 8 hexadecimal digits",
    f"pkh([deadbeef/-0/-0/-0]{COMPRESSED})": "origin of a key must be 8 hexadecimal digits",
    f"pkh([deadbeef/2147483648]{COMPRESSED})": "origin of a key must be 8 hexadecimal digits",
    f"pkh({COMPRESSED}/0)": "a single public key has no path",
    f"pkh({COMPRESSED}/*)": "a single public key has no path",
    f"pkh({D}/2147483648)": "numbers up to 2147483647",
    f"pkh({D}/1aa)": "numbers up to 2147483647",
    f"pkh([aaaaaaaa][aaaaaaaa]{D}/0)": "missing or malformed",
    f"pkh(aaaaaaaa]{D}/0)": "missing or malformed",
    f"pkh([gaaaaaaa]{D}/0)": "origin of a key must be 8 hexadecimal digits",
    "pkh([deadbeef])": "missing or malformed",
    # BIP 381
    f"pk({COMPRESSED})": "a form that is not supported",
    f"pkh(pk({COMPRESSED}))": "a form that is not supported",
    f"sh({COMPRESSED})": "a form that is not supported",
    f"sh(sh(pkh({COMPRESSED})))": "a form that is not supported",
    # BIP 382
    f"wpkh({UNCOMPRESSED})": "segwit scripts need compressed public keys",
    f"sh(wpkh({UNCOMPRESSED}))": "segwit scripts need compressed public keys",
    f"wsh(multi(1,{UNCOMPRESSED}))": "segwit scripts need compressed public keys",
    f"wsh(wpkh({COMPRESSED}))": "a form that is not supported",
    f"wsh(wsh(pkh({COMPRESSED})))": "a form that is not supported",
    f"wpkh(wsh(pkh({COMPRESSED})))": "a form that is not supported",
    f"wsh({COMPRESSED})": "a form that is not supported",
    # BIP 383
    f"sh(multi(16,{','.join(SIXTEEN)}))": "has 547 bytes; the most are 520, enough for 15 compressed keys",
    f"sh(multi(a,{COMPRESSED},{UNCOMPRESSED}))": "must begin with how many of its 2 keys sign: a number from 1 to 2",
    f"sh(multi(0,{COMPRESSED},{UNCOMPRESSED}))": "must begin with how many of its 2 keys sign",
    f"sh(multi(3,{COMPRESSED},{UNCOMPRESSED}))": "must begin with how many of its 2 keys sign",
    f"multi(1,{COMPRESSED})": "a form that is not supported",
    # BIP 389
    f"pkh({D}/<0;1>/<2;3>)": "more than one multipath",
    f"pkh([deadbeef/<0;1>]{D}/0)": "origin of a key must be 8 hexadecimal digits",
    f"sh(multi(2,{A}/<1;2;3>/0/*,{B}/0/*,{E}/0/0/<3;4>/*))": "a multipath must have two different numbers",
    f"pkh({D}/<0;1;2>)": "a multipath must have two different numbers",
    f"wpkh({D}/<>/*)": "one <0;1> and a final",
    f"wpkh({D}/0>/*)": "one <0;1> and a final",
    f"wpkh({D}/<0/*)": "one <0;1> and a final",
    f"wpkh({D}/<0;>/*)": "one <0;1> and a final",
    f"wpkh({D}/<0>/*)": "one <0;1> and a final",
    f"wpkh({D}/<1;1>/*)": "a multipath must have two different numbers",
    # other limits
    f"tr({A}/<0;1>/*)": "add the addresses of this wallet as single wallets",
    f"tr({A},{{pk({A}),pk({B})}})": "add the addresses of this wallet as single wallets",
    f"combo({A})": "a form that is not supported",
    "addr(1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2)": "a form that is not supported",
    "raw(deadbeef)#89f8spxm": "a form that is not supported",
    f"wsh(and_v(v:pk({A}),older(5)))": "a form that is not supported",
    f"wpkh({A}/*": "not supported or not complete",
    f"wpkh({A}/*))": "not supported or not complete",
    f"wpkh({A},{B})": "has 2 keys; give one",
    "wpkh()": "missing or malformed",
    f"sh(multi(1,{A},))": "missing or malformed",
    f"wpkh({A}/0h/*)": "hardened steps after an extended public key need its private key",
    f"wpkh({A}/*')": "hardened steps after an extended public key need its private key",
    f"wpkh({A}/<0h;1>/*)": "hardened steps after an extended public key need its private key",
    f"wpkh({A}/*/0)": "one <0;1> and a final",
    f"wpkh({A}/)": "one <0;1> and a final",
    f"wpkh({A}//0)": "one <0;1> and a final",
    f"wpkh(m/{A})": "nor an extended one",
    f"wpkh({A[:-1]})": "its checksum is wrong",
    f"wpkh({A}{'/0' * 252})": "deeper than 255 levels",
    f"wpkh({A} )": "missing or malformed",
    f" wpkh({A})": "not supported or not complete",
    f"wpkh({A})\n": "a character that descriptors do not allow",
    f"wpkh(05{COMPRESSED[2:]})": "nor an extended one",
    f"wpkh(02{'f' * 64})": "no point of the curve",
    f"pkh(06{UNCOMPRESSED[2:]})": "nor an extended one",
    f"wsh(multi(1{f',{COMPRESSED}' * 21}))": "has 21 keys; the most are 20",
    f"wsh(multi(10{f',{COMPRESSED}' * 9}))": "a number from 1 to 9",
    f"[deadbeef/84h/0h/0h]{A}": "does not say its script",
    f"{A}/0/*": "does not say its script",
    COMPRESSED: "a public key does not say its script",
    "": "not supported or not complete",
    "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu": "nor an extended one",
    "x" * (LONGEST + 1): "more than 4000 characters",
}


def with_version(version: str, key: str) -> str:
    return base58.encode_check(bytes.fromhex(version) + base58.decode_check(key)[4:])


@pytest.mark.parametrize(("text", "scripts"), SCRIPTS.items())
def test_published_descriptors_give_their_scripts(text: str, scripts: Sequence[str]) -> None:
    keys = parse_keys(text, BITCOIN)
    assert [keys.script(0, index).hex() for index in range(len(scripts))] == scripts
    assert (keys.is_ranged, keys.branches) == (len(scripts) > 1, 1)


def test_published_multisig_of_twenty_keys_gives_its_script() -> None:
    """Source: BIP 383. Its private keys become public ones first, because wallets take no others."""
    words = [
        "KzoAz5CanayRKex3fSLQ2BwJpN7U52gZvxMyk78nDMHuqrUxuSJy",
        "KwGNz6YCCQtYvFzMtrC6D3tKTKdBBboMrLTsjr2NYVBwapCkn7Mr",
        "KxogYhiNfwxuswvXV66eFyKcCpm7dZ7TqHVqujHAVUjJxyivxQ9X",
        "L2BUNduTSyZwZjwNHynQTF14mv2uz2NRq5n5sYWTb4FkkmqgEE9f",
        "L1okJGHGn1kFjdXHKxXjwVVtmCMR2JA5QsbKCSpSb7ReQjezKeoD",
        "KxDCNSST75HFPaW5QKpzHtAyaCQC7p9Vo3FYfi2u4dXD1vgMiboK",
        "L5edQjFtnkcf5UWURn6UuuoFrabgDQUHdheKCziwN42aLwS3KizU",
        "KzF8UWFcEC7BYTq8Go1xVimMkDmyNYVmXV5PV7RuDicvAocoPB8i",
        "L3nHUboKG2w4VSJ5jYZ5CBM97oeK6YuKvfZxrefdShECcjEYKMWZ",
        "KyjHo36dWkYhimKmVVmQTq3gERv3pnqA4xFCpvUgbGDJad7eS8WE",
        "KwsfyHKRUTZPQtysN7M3tZ4GXTnuov5XRgjdF2XCG8faAPmFruRF",
        "KzCUbGhN9LJhdeFfL9zQgTJMjqxdBKEekRGZX24hXdgCNCijkkap",
        "KzgpMBwwsDLwkaC5UrmBgCYaBD2WgZ7PBoGYXR8KT7gCA9UTN5a3",
        "KyBXTPy4T7YG4q9tcAM3LkvfRpD1ybHMvcJ2ehaWXaSqeGUxEdkP",
        "KzJDe9iwJRPtKP2F2AoN6zBgzS7uiuAwhWCfGdNeYJ3PC1HNJ8M8",
        "L1xbHrxynrqLKkoYc4qtoQPx6uy5qYXR5ZDYVYBSRmCV5piU3JG9",
        "KzRedjSwMggebB3VufhbzpYJnvHfHe9kPJSjCU5QpJdAW3NSZxYS",
        "Kyjtp5858xL7JfeV4PNRCKy2t6XvgqNNepArGY9F9F1SSPqNEMs3",
        "L2D4RLHPiHBidkHS8ftx11jJk1hGFELvxh8LoxNQheaGT58dKenW",
        "KyLPZdwY4td98bKkXqEXTEBX3vwEYTQo1yyLjX2jKXA63GBpmSjv",
    ]
    keys = ",".join(PrivateKey.from_wif(word).get_public_key().sec().hex() for word in words)
    script = "0020376bd8344b8b6ebe504ff85ef743eaa1aa9272178223bcb6887e9378efb341ac"
    assert parse_keys(f"wsh(multi(20,{keys}))", BITCOIN).script(0, 0).hex() == script
    nested = parse_keys(f"sh(wsh(multi(20,{keys})))", BITCOIN)
    assert nested.script(0, 0).hex() == "a914c2c9c510e9d7f92fd6131e94803a8d34a8ef675e87"


def test_published_sorted_multisig_gives_its_scripts() -> None:
    keys = parse_keys(f"wsh(sortedmulti(2,{A}/*,{B}/0/0/*))", BITCOIN)
    for index, script in enumerate(WITNESS_SCRIPTS):
        assert keys.script(0, index).hex() == f"0020{hashlib.sha256(bytes.fromhex(script)).hexdigest()}"


@pytest.mark.parametrize(("parent", "index", "child"), CHILDREN)
def test_published_children_of_public_keys(parent: str, index: int, child: str) -> None:
    by_path = parse_keys(f"wpkh({parent}/{index}/*)", BITCOIN)
    of_child = parse_keys(f"wpkh({child}/*)", BITCOIN)
    assert by_path.identity == of_child.identity
    assert by_path.script(0, 7) == of_child.script(0, 7)
    assert parse_keys(f"pkh({parent}/{index})", BITCOIN).script(0, 0) == parse_keys(f"pkh({child})", BITCOIN).script(
        0, 0
    )


@pytest.mark.parametrize(("key", "address"), VERSIONS.items())
def test_published_versions_of_extended_keys(key: str, address: str) -> None:
    keys = parse_keys(key, BITCOIN)
    assert keys.address(0, 0) == address
    assert (keys.is_ranged, keys.branches) == (True, 2)
    assert key not in keys.descriptor or key.startswith("xpub")
    form = {"x": "pkh({})", "y": "sh(wpkh({}))", "z": "wpkh({})"}[key[0]]
    spelled = parse_keys(form.format(f"[73c5da0a/84'/0'/0']{with_version('0488b21e', key)}/<0;1>/*"), BITCOIN)
    assert spelled == keys
    assert parse_keys(form.format(f"{key}/0/*"), BITCOIN).script(0, 5) == keys.script(0, 5)
    assert parse_keys(form.format(f"{key}/1/*"), BITCOIN).script(0, 5) == keys.script(1, 5)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        # BIP 389
        ((f"{C}/1/2/*", f"{C}/3/2/*"), f"wpkh([ffffffff/13h]{C}/<1;3>/2/*)"),
        ((f"{D}/7/0", f"{D}/0/0"), f"wpkh({D}/<7;0>/0)"),
    ],
)
def test_multipath_gives_one_descriptor_for_each_branch(expected: tuple[str, str], text: str) -> None:
    keys = parse_keys(text, BITCOIN)
    assert keys.branches == 2
    for branch, key in enumerate(expected):
        assert keys.script(branch, 0) == parse_keys(f"wpkh({key})", BITCOIN).script(0, 0)


def test_multipaths_of_a_multisig_step_together() -> None:
    """Source: BIP 389, with two paths in place of three."""
    keys = parse_keys(f"sh(multi(2,{A}/<1;2>/0/*,{B}/0/*,{E}/0/0/<3;4>/*))", BITCOIN)
    for branch, (first, last) in enumerate(((1, 3), (2, 4))):
        single = parse_keys(f"sh(multi(2,{A}/{first}/0/*,{B}/0/*,{E}/0/0/{last}/*))", BITCOIN)
        assert keys.script(branch, 3) == single.script(0, 3)


def test_checksum_is_verified_and_added() -> None:
    keys = parse_keys(f"wpkh({C}/*)", BITCOIN)
    assert parse_keys(keys.descriptor, BITCOIN) == keys
    body, check = keys.descriptor.split("#")
    for damaged in (
        f"{body}#",
        f"{body}#{check}q",
        f"{body}#{check[:-1]}",
        f"{body}##{check[1:]}",
        f"{body}#{check[:-1]}b",
    ):
        with pytest.raises(InvalidAddress, match="the checksum after # must have 8 characters"):
            parse_keys(damaged, BITCOIN)
    for damaged in (f"{body}#{'q' * 8}", f"{body.replace('/*', '/0')}#{check}", "raw(deedbeef)#89f8spxm"):
        with pytest.raises(InvalidAddress, match="does not fit its checksum"):
            parse_keys(damaged, BITCOIN)
    with pytest.raises(InvalidAddress, match="a character that descriptors do not allow"):
        parse_keys("raw(\N{LATIN CAPITAL LETTER U WITH DIAERESIS})#00000000", BITCOIN)


@pytest.mark.parametrize(("text", "reason"), INVALID.items(), ids=range(len(INVALID)))
def test_invalid_texts_are_refused_with_the_reason_and_not_repeated(text: str, reason: str) -> None:
    with pytest.raises(InvalidAddress, match=reason) as caught:
        parse_keys(text, BITCOIN)
    shown = str(caught.value)
    assert shown.isprintable()
    assert not any(text[start : start + 20] in shown for start in range(len(text) - 20))


@pytest.mark.parametrize("key", PRIVATE_KEYS)
def test_private_keys_are_refused_and_not_repeated(key: str) -> None:
    texts = [
        key,
        f"wpkh({key})",
        f"wpkh([deadbeef/0h]{key}/0/*)#00000000",
        f"wsh(multi(1,{COMPRESSED},{key}))",
        f"tr({key})",
    ]
    # A mistyped key, and one with other words.
    texts += [key[:-1] + ("1" if key[-1] != "1" else "2"), f"my key is {key}"]
    for text in texts:
        refusals = [lambda text=text: parse_keys(text, BITCOIN), lambda text=text: codec_for("utxo").parse(text)]
        for refuse in refusals:
            with pytest.raises(InvalidAddress, match="contains a private key, which is not needed") as caught:
                refuse()
            error: BaseException | None = caught.value
            while error is not None:
                assert key[:8] not in str(error)
                error = error.__cause__ or error.__context__


@given(st.binary(min_size=4, max_size=4), st.integers(1, 2**250))
def test_private_keys_of_any_network_are_refused(version: bytes, secret: int) -> None:
    number = secret.to_bytes(32, "big")
    for payload in (version + bytes(41) + b"\0" + number, version[:1] + number, version[:1] + number + b"\1"):
        with pytest.raises(InvalidAddress, match="contains a private key"):
            parse_keys(f"pkh({base58.encode_check(payload)})", LITECOIN)


@pytest.mark.parametrize(
    ("network", "text", "needed"),
    [
        (BITCOIN, with_version("043587cf", A), "xpub"),
        (BITCOIN, f"wpkh({with_version('045f1cf6', A)}/*)", "xpub"),
        (BITCOIN, with_version("019da462", A), "xpub"),
        (BITCOIN, f"wsh(multi(1,{A},{with_version('043587cf', B)}))", "xpub"),
        (BITCOIN, with_version("02facafd", A), "xpub"),  # Dogecoin's
        (TESTNET, A, "tpub"),
        (TESTNET, f"pkh({A})", "tpub"),
        (REGTEST, with_version("04b24746", A), "tpub"),
        (LITECOIN, with_version("043587cf", A), "xpub"),
    ],
)
def test_keys_of_another_network_are_refused(network: UtxoDefinition, text: str, needed: str) -> None:
    with pytest.raises(InvalidAddress, match=f"another network; keys of this network begin with {needed}"):
        parse_keys(text, network)


@pytest.mark.parametrize(
    ("network", "version", "form"),
    [
        (BITCOIN, "04b24746", "wpkh"),
        (TESTNET, "043587cf", "pkh"),
        (TESTNET, "044a5262", "sh(wpkh"),
        (TESTNET, "045f1cf6", "wpkh"),
        (LITECOIN, "0488b21e", "pkh"),
        (LITECOIN, "04b24746", "wpkh"),
        (LITECOIN, "019da462", "pkh"),
        (LITECOIN, "01b26ef6", "sh(wpkh"),
        (REGTEST, "0436f6e1", "pkh"),
    ],
)
def test_versions_say_the_script_and_become_the_standard_one(network: UtxoDefinition, version: str, form: str) -> None:
    keys = parse_keys(with_version(version, A), network)
    standard = with_version(network.extended_key_versions[0].hex(), A)
    assert keys.descriptor.startswith(f"{form}({standard}/<0;1>/*)")


@pytest.mark.parametrize("version", ["0295b43f", "02aa7ed3"])
def test_version_of_a_multisig_key_needs_the_descriptor(version: str) -> None:
    key = with_version(version, A)
    with pytest.raises(InvalidAddress, match="one key of a multisig wallet; give the wallet's whole descriptor"):
        parse_keys(key, BITCOIN)
    inside = parse_keys(f"wsh(sortedmulti(1,{key}/*,{B}/*))", BITCOIN)
    assert inside == parse_keys(f"wsh(sortedmulti(1,{B}/*,{A}/*))", BITCOIN)


@pytest.mark.parametrize("start", ["00" + "00000001" + "00000000", "00" + "00000000" + "00000001"])
def test_root_key_with_a_parent_is_refused(start: str) -> None:
    """Source: BIP 32, test vector 5."""
    payload = base58.decode_check(D)
    with pytest.raises(InvalidAddress, match="an extended key of depth 0 has a parent"):
        parse_keys(base58.encode_check(payload[:4] + bytes.fromhex(start) + payload[13:]), BITCOIN)


def test_extended_key_that_is_no_point_is_refused() -> None:
    """Source: BIP 32, test vector 5."""
    payload = base58.decode_check(D)
    for key in (b"\4" + payload[46:], b"\1" + payload[46:], b"\2" + bytes(31) + b"\7"):
        with pytest.raises(InvalidAddress, match="no point of the curve"):
            parse_keys(base58.encode_check(payload[:45] + key), BITCOIN)


def test_deepest_path_is_accepted() -> None:
    depth = base58.decode_check(A)[4]
    assert parse_keys(f"pkh({A}{'/0' * (254 - depth)}/*)", BITCOIN).is_ranged


def test_most_keys_are_accepted() -> None:
    fifteen = ",".join(SIXTEEN[:15])
    for text in (f"sh(multi(15,{fifteen}))", f"sh(sortedmulti(1,{fifteen}))", f"wsh(multi(20{f',{A}/*' * 20}))"):
        assert parse_keys(text, BITCOIN).address(0, 0)
    assert parse_keys(f"sh(multi(1{f',{UNCOMPRESSED}' * 7}))", BITCOIN).address(0, 0)
    with pytest.raises(InvalidAddress, match="has 531 bytes"):
        parse_keys(f"sh(multi(1{f',{UNCOMPRESSED}' * 8}))", BITCOIN)


def test_wallet_has_no_other_branch_or_index() -> None:
    ranged, single = parse_keys(f"wpkh({A}/<0;1>/*)", BITCOIN), parse_keys(f"wpkh({A})", BITCOIN)
    assert ranged.script(1, 2**31 - 1)
    for keys, branch, index in ((ranged, 2, 0), (ranged, -1, 0), (ranged, 0, 2**31), (ranged, 0, -1), (single, 0, 1)):
        with pytest.raises(ValueError, match=f"the wallet has no branch {branch} with index {index}"):
            keys.script(branch, index)
        with pytest.raises(ValueError, match="the wallet has no branch"):
            keys.address(branch, index)


def test_shortened_form_shows_ends_of_keys() -> None:
    keys = parse_keys(f"wpkh([deadbeef/84h]{A}/<0;1>/*)", BITCOIN)
    assert keys.descriptor == f"wpkh({A}/<0;1>/*)#{keys.descriptor[-8:]}"
    assert keys.shortened == f"wpkh(xpub6ER…RcEL/<0;1>/*)#{keys.descriptor[-8:]}"
    three = parse_keys(f"wsh(multi(2,{A}/*,{COMPRESSED},{C}/*))", BITCOIN)
    assert three.shortened.startswith("wsh(multi(2,xpub6ER…RcEL/*,03a34b9…c5bd,xpub69H…QTPH/*))#")
    many = parse_keys(f"sh(wsh(multi(2,{','.join(SIXTEEN)})))", BITCOIN)
    assert many.shortened.startswith("sh(wsh(multi(2,03669b8…dbd0,0260b20…e600,14 more keys)))#")
    assert A[20:40] not in repr(keys)
    assert keys.shortened in repr(keys)


def test_scripts_are_derived_by_the_native_library() -> None:
    """2,000 scripts take 0.14 s by it, and 3 s by the library's fallback in Python."""
    assert secp256k1.ec_pubkey_add.__module__ == "embit.util.ctypes_secp256k1"
    keys = parse_keys(f"wpkh({A}/<0;1>/*)", BITCOIN)
    assert len({keys.script(branch, index) for branch in (0, 1) for index in range(SCAN_RANGE)}) == 2_000


def roots(seed: int) -> str:
    return str(
        bip32.HDKey.from_seed(seed.to_bytes(16, "big"), version=bytes.fromhex("0488ade4")).to_public().to_base58()
    )


numbers = st.integers(0, 3) | st.just(2**31 - 1)
steps = numbers.map(lambda number: f"/{number}")
multipaths = st.permutations([0, 1, 5]).map(lambda found: f"/<{found[0]};{found[1]}>")
key_texts = st.builds(
    lambda origin, seed, version, before, multipath, after, star: (
        origin + with_version(version, roots(seed)) + "".join(before) + multipath + "".join(after) + star
    ),
    st.sampled_from(["", "[deadbeef]", "[DEADBEEF/84'/0h/1]"]),
    st.integers(0, 5),
    st.sampled_from(["0488b21e", "049d7cb2", "04b24746", "0295b43f", "02aa7ed3"]),
    st.lists(steps, max_size=2),
    multipaths | st.just(""),
    st.lists(steps, max_size=2),
    st.sampled_from(["", "/*"]),
) | st.sampled_from([COMPRESSED, COMPRESSED.upper(), *SIXTEEN])


@st.composite
def descriptors(draw: st.DrawFn) -> str:
    form = draw(st.sampled_from(["pkh({})", "wpkh({})", "sh(wpkh({}))", "sh({})", "wsh({})", "sh(wsh({}))"]))
    if form in ("pkh({})", "wpkh({})", "sh(wpkh({}))"):
        return form.format(draw(key_texts))
    keys = draw(st.lists(key_texts, min_size=1, max_size=4))
    name = draw(st.sampled_from(["multi", "sortedmulti"]))
    return form.format(f"{name}({draw(st.integers(1, len(keys)))},{','.join(keys)})")


def first_scripts(keys: WalletKeys) -> list[list[bytes]]:
    indices = (0, 1, 9) if keys.is_ranged else (0,)
    return [[keys.script(branch, index) for index in indices] for branch in range(keys.branches)]


@given(descriptors())
def test_canonical_text_is_the_same_wallet(text: str) -> None:
    keys = parse_keys(text, BITCOIN)
    again = parse_keys(keys.descriptor, BITCOIN)
    assert again == keys
    assert first_scripts(again) == first_scripts(keys)
    assert "[" not in keys.descriptor


@given(descriptors())
def test_scripts_equal_the_librarys(text: str) -> None:
    keys = parse_keys(text, BITCOIN)
    reference = Descriptor.from_string(keys.descriptor.split("#")[0])
    for branch in range(keys.branches):
        for index in (0, 1, 1000) if keys.is_ranged else (0,):
            expected = reference.derive(index, branch_index=branch).script_pubkey().data
            assert keys.script(branch, index) == expected


@pytest.mark.ci
@given(descriptors(), descriptors())
def test_identity_is_equal_exactly_for_equal_scripts(first: str, second: str) -> None:
    left, right = parse_keys(first, BITCOIN), parse_keys(second, BITCOIN)
    are_equal = left.is_ranged == right.is_ranged and sorted(first_scripts(left)) == sorted(first_scripts(right))
    assert (left.identity == right.identity) == are_equal


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"wpkh({A}/<0;1>/*)", f"wpkh([deadbeef/84h/0h/0h]{A}/<0;1>/*)"),
        (f"wpkh({A}/<0;1>/*)", f"wpkh({A}/<1;0>/*)"),
        (f"wpkh({A}/<0;1>/*)", with_version("04b24746", A)),
        (f"wpkh({A}/<00;01>/*)", with_version("04b24746", A)),
        (f"wsh(sortedmulti(2,{A}/*,{B}/0/*))", f"wsh(sortedmulti(2,{B}/0/*,{A}/*))"),
        (f"wsh(multi(1,{A}/*))", f"wsh(sortedmulti(1,{A}/*))"),
        (f"pkh({D}/0/*)", f"pkh({C}/*)"),
        (f"pkh({COMPRESSED})", f"pkh({COMPRESSED.upper()})"),
    ],
)
def test_equal_wallets_have_equal_identity(first: str, second: str) -> None:
    assert parse_keys(first, BITCOIN).identity == parse_keys(second, BITCOIN).identity


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"wpkh({A}/<0;1>/*)", f"wpkh({A}/0/*)"),
        (f"wpkh({A}/0/*)", f"wpkh({A}/0/0)"),
        (f"wpkh({A}/0/*)", f"pkh({A}/0/*)"),
        (f"wsh(multi(2,{A},{B}))", f"wsh(multi(2,{B},{A}))"),
        (f"wsh(multi(2,{A},{B}))", f"sh(multi(2,{A},{B}))"),
        (f"wsh(multi(1,{A},{B}))", f"wsh(multi(2,{A},{B}))"),
        # Its scripts at 0 and 1 are in the order of their bytes.
        (f"wpkh({F}/<0;1>)", f"wpkh({F}/*)"),
    ],
)
def test_other_wallets_have_another_identity(first: str, second: str) -> None:
    assert parse_keys(first, BITCOIN).identity != parse_keys(second, BITCOIN).identity


@pytest.mark.ci
@given(st.text(max_size=60) | st.text("()/*<>;,[]#'h0123456789xpubwshmultikd", max_size=200))
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidAddress) as caught:
        parse_keys(text, BITCOIN)
    assert str(caught.value).isprintable()


def test_gap_counts_from_the_highest_used_index() -> None:
    assert (GAP, SCAN_RANGE) == (20, 1_000)
    assert next_range(None, -1) == 19
    assert next_range(0, -1) == 20
    assert next_range(None, 19) is None
    assert next_range(None, 999) is None
    assert next_range(979, 999) is None
    assert next_range(980, 999) == 1_000
    assert next_range(999, 999) == 1_019
    assert next_range(5, 1_019) is None
    assert next_range(2**31 - 1, 2**31 - 2) == 2**31 - 1
    assert next_range(2**31 - 1, 2**31 - 1) is None
