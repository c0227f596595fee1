"""Network definitions: the shipped file, and faults refused in other files."""

import hashlib
import struct
import tomllib
from pathlib import Path

import pytest
from eth_utils.address import is_checksum_address

from control.networks.data_sets import DataSet
from control.networks.definitions import (
    CommonToken,
    NativeMode,
    Network,
    NetworksError,
    Verification,
    load_networks,
)
from control.networks.evm import MULTICALL3_ADDRESS, EvmDefinition
from control.networks.utxo import ProofOfWork, UtxoDefinition
from control.settings import load_settings

SHIPPED = load_settings({}).networks_file

# Registered at https://chainlist.org; 31337 is the default of development nodes.
CHAIN_IDS = {
    "ethereum": 1,
    "sepolia": 11155111,
    "polygon": 137,
    "arbitrum": 42161,
    "optimism": 10,
    "base": 8453,
    "avalanche": 43114,
    "bnb": 56,
    "gnosis": 100,
    "local": 31337,
}
# Prefixes as in chainparams.cpp of Bitcoin Core and Litecoin Core. The later versions are in SLIP-132.
XPUB, TPUB, LTUB, TTUB = map(bytes.fromhex, ("0488b21e", "043587cf", "019da462", "0436f6e1"))
OUTPUT_NETWORKS = {
    "bitcoin": UtxoDefinition(
        "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f",
        0,
        (5,),
        "bc",
        None,
        (XPUB,),
        ProofOfWork.SHA256D,
    ),
    "bitcoin-testnet": UtxoDefinition(
        "00000000da84f2bafbbc53dee25a72ae507ff4914b867c565be350b0da8bf043",
        111,
        (196,),
        "tb",
        None,
        (TPUB,),
        ProofOfWork.SHA256D,
    ),
    "litecoin": UtxoDefinition(
        "12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2",
        48,
        (50, 5),
        "ltc",
        "ltcmweb",
        (XPUB, LTUB),
        ProofOfWork.SCRYPT,
    ),
    "local-utxo": UtxoDefinition(
        "530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9",
        111,
        (58, 196),
        "rltc",
        "tmweb",
        (TPUB, TTUB),
    ),
}
# The block 0 of each, as its software makes it: text, key of the output, time, bits, nonce.
BITCOIN_KEY = (
    "04678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb6"
    "49f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5f"
)
LITECOIN_KEY = (
    "040184710fa689ad5023690c80f3a49c8f13f8d45b8c857fbcbc8bc4a8e4d3eb4b"
    "10f4d4604fa08dce601aaf0f470216fe1b51850b4acf21b179c45070ac7b03a9"
)
BITCOIN_TEXT = "The Times 03/Jan/2009 Chancellor on brink of second bailout for banks"
TESTNET4_TEXT = "03/May/2024 000000000000000000001ebd58c244970b3aa9d783bb001011fbe8ea8e98e00e"
LITECOIN_TEXT = "NY Times 05/Oct/2011 Steve Jobs, Apple\u2019s Visionary, Dies at 56"
FIRST_BLOCKS = {
    "bitcoin": (BITCOIN_TEXT, BITCOIN_KEY, 1231006505, 0x1D00FFFF, 2083236893),
    "bitcoin-testnet": (TESTNET4_TEXT, 66 * "0", 1714777860, 0x1D00FFFF, 393743547),
    "litecoin": (LITECOIN_TEXT, LITECOIN_KEY, 1317972665, 0x1E0FFFF0, 2084524493),
    "local-utxo": (LITECOIN_TEXT, LITECOIN_KEY, 1296688602, 0x207FFFFF, 0),
}

EXAMPLE = """
[[network]]
name = "example"
display_name = "Example"
family = "evm"
chain_id = 5
is_testnet = true
rpc = ["${FIRST_URL}", "https://node/${KEY}/x"]
native = { symbol = "EX", decimals = 18, collect = "balance-only" }
finality_depth = 10
poll_seconds = 2
max_requests_per_day = 100_000
explorer = "https://explorer.example/x/"
verification = "sample"
multicall_address = ""
max_log_range = 5000
[[network.token]]
symbol = "USDC"
address = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
decimals = 6
"""


def load(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> dict[str, Network]:
    path = tmp_path / "networks.toml"
    path.write_text(text, encoding="utf-8")
    return load_networks(path, environ or {})


def test_shipped_networks_have_their_chain_ids_and_variables() -> None:
    networks = load_networks(SHIPPED, {})
    assert {name: network.chain_id for name, network in networks.items() if network.family == "evm"} == CHAIN_IDS
    assert {name: network.own for name, network in networks.items() if network.family == "utxo"} == OUTPUT_NETWORKS
    testnets = {"sepolia", "local", "bitcoin-testnet", "local-utxo"}
    assert {name for name, network in networks.items() if network.is_testnet} == testnets
    for name, network in networks.items():
        variable = f"{name.upper().replace('-', '_')}_RPC_URL"
        assert not network.is_enabled
        assert network.disabled_reason == f"no node address: set {variable}"
        enabled = load_networks(SHIPPED, {variable: "http://127.0.0.1:8545"})
        assert {other for other, definition in enabled.items() if definition.is_enabled} == {name}
        assert enabled[name].rpc_urls == ("http://127.0.0.1:8545",)
        if isinstance(network.own, EvmDefinition):
            assert network.own.multicall_address == MULTICALL3_ADDRESS == MULTICALL3_ADDRESS.lower()


def double_sha256(data: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


@pytest.mark.parametrize("name", OUTPUT_NETWORKS)
def test_genesis_hash_is_computed_from_the_first_block(name: str) -> None:
    text, key, time, bits, nonce = FIRST_BLOCKS[name]
    message, output = text.encode(), bytes.fromhex(key)
    push = bytes([len(message)]) if len(message) < 76 else bytes([76, len(message)])
    start = bytes.fromhex("04ffff001d0104") + push + message
    script = bytes([len(output)]) + output + b"\xac"
    transaction = (
        struct.pack("<IB32xIB", 1, 1, 0xFFFFFFFF, len(start))
        + start
        + struct.pack("<IBQB", 0xFFFFFFFF, 1, 50 * 10**8, len(script))
        + script
        + bytes(4)
    )
    header = struct.pack("<I32x32sIII", 1, double_sha256(transaction), time, bits, nonce)
    assert double_sha256(header)[::-1].hex() == load_networks(SHIPPED, {})[name].own.identity


def test_shipped_token_addresses_are_written_with_their_checksum() -> None:
    for network in tomllib.loads(SHIPPED.read_text(encoding="utf-8"))["network"]:
        for token in network.get("token", []):
            assert is_checksum_address(token["address"]), token


def test_an_entry_with_an_unset_variable_is_dropped(tmp_path: Path) -> None:
    only_first = load(tmp_path, EXAMPLE, {"FIRST_URL": "http://10.0.0.1:8545", "KEY": ""})["example"]
    assert only_first.rpc_urls == ("http://10.0.0.1:8545",)
    both = load(tmp_path, EXAMPLE, {"FIRST_URL": "http://10.0.0.1:8545", "KEY": "secret"})["example"]
    assert both.rpc_urls == ("http://10.0.0.1:8545", "https://node/secret/x")
    assert "secret" not in repr(both)
    neither = load(tmp_path, EXAMPLE)["example"]
    assert (neither.is_enabled, neither.rpc_urls) == (False, ())
    assert neither.disabled_reason == "no node address: set FIRST_URL or KEY"


def test_all_fields_are_read(tmp_path: Path) -> None:
    assert load(tmp_path, EXAMPLE, {"FIRST_URL": "https://a"})["example"] == Network(
        name="example",
        display_name="Example",
        family="evm",
        own=EvmDefinition(chain_id=5, multicall_address=None, max_log_range=5000),
        is_testnet=True,
        rpc_urls=("https://a",),
        is_enabled=True,
        disabled_reason=None,
        native_symbol="EX",
        native_decimals=18,
        native=NativeMode.BALANCE_ONLY,
        finality_depth=10,
        poll_seconds=2,
        tokens=(CommonToken("USDC", "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", 6),),
        max_requests_per_day=100_000,
        explorer="https://explorer.example/x",
        verification=Verification.SAMPLE,
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('family = "evm"', 'family = "other"', "field 'family': is 'other'; write one of evm, utxo"),
        ('family = "evm"', "", "field 'family': is missing; add it"),
        ('family = "evm"', 'family = "utxo"', "field 'chain_id': is unknown"),
        ("chain_id = 5", 'chain_id = "5"', "field 'chain_id': Expected `int`, got `str`"),
        ("chain_id = 5", "chain_id = 0", "field 'chain_id': is 0; Expected `int` >= 1"),
        ("chain_id = 5", "chain_id = true", "field 'chain_id': Expected `int`, got `bool`"),
        ("is_testnet = true", "is_testnet = 1", "field 'is_testnet': Expected `bool`, got `int`"),
        ("poll_seconds = 2", "poll_seconds = 2.5", "field 'poll_seconds': Expected `int`, got `float`"),
        ("poll_seconds", "pol_seconds", "field 'pol_seconds': is unknown"),
        ("poll_seconds = 2\n", "", "field 'poll_seconds': is missing; add it"),
        ("max_log_range", "max_logs_range", "field 'max_logs_range': is unknown"),
        (
            'rpc = ["${FIRST_URL}", "https://node/${KEY}/x"]',
            'rpc = "https://a"',
            "field 'rpc': Expected `array`, got `str`",
        ),
        ("${FIRST_URL}", "ws://node", "field 'rpc': 'ws://node' does not give"),
        ("${FIRST_URL}", "http://node:port", "field 'rpc'"),
        (
            '{ symbol = "EX", decimals = 18, collect = "balance-only" }',
            '"EX"',
            "field 'native': Expected `table`, got `str`",
        ),
        ('symbol = "EX", decimals = 18', 'symbol = "EX"', "field 'native': field 'decimals': is missing"),
        ('"balance-only"', '"all"', "field 'native': field 'collect': is 'all'; write one of full, balance-only"),
        ("100_000", "0", "field 'max_requests_per_day': is 0; Expected `int` >= 1"),
        ("https://explorer.example", "http://explorer.example", "field 'explorer': is not a plain https:// address"),
        ("https://explorer.example", "https://me:secret@explorer.example", "field 'explorer': is not a plain https"),
        ("https://explorer.example", "javascript:alert(1)//", "field 'explorer': is not a plain https:// address"),
        ("explorer.example/x/", "explorer.example/?q=", "field 'explorer': is not a plain https:// address"),
        ("explorer.example/x/", "explorer.example/#x", "field 'explorer': is not a plain https:// address"),
        ('"sample"', '"some"', "field 'verification': is 'some'; write one of full, sample, off"),
        ("explorer.example", "", "field 'explorer': is not a plain https:// address"),
        ("decimals = 18", "decimals = 256", "field 'native': field 'decimals': is 256; Expected `int` <= 255"),
        ("decimals = 18", "decimals = 18, x = 1", "field 'native': field 'x': is unknown"),
        ('address = "0xA0b', 'address = "0xA0B', "token 'USDC': field 'address': is invalid: .* checksum"),
        ('address = "0xA', 'address = "A', "token 'USDC': field 'address'"),
        ('multicall_address = ""', 'multicall_address = "0x1"', "field 'multicall_address'"),
        ("[[network.token]]", "[network.token]", "field 'token': Expected `array`, got `table`"),
    ],
)
def test_a_malformed_definition_names_file_network_and_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in EXAMPLE
    with pytest.raises(NetworksError, match=message) as caught:
        load(tmp_path, EXAMPLE.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'networks.toml'}: network 'example': ")


DATA_SETS = (
    EXAMPLE
    + """
[[network.data_set]]
name = "public"
form = "aws"
files = "s3://bucket/logs/date={date}/*.parquet"
[[network.data_set]]
name = "private"
form = "cryo-logs"
files = "${FOLDER}/eth__{table}__{first}_to_{last}.parquet"
[[network.data_set]]
name = "own"
form = "columns"
files = "/srv/{first}-{last}.csv.gz"
[network.data_set.columns]
block_number = "b"
block_hash = "h"
block_time = "t"
transaction_index = "i"
transaction_hash = "x"
log_index = "l"
token_address = "c"
from_address = "f"
to_address = "o"
amount = "a"
"""
)


def test_data_sets_are_read_in_their_order(tmp_path: Path) -> None:
    public, private, own = load(tmp_path, DATA_SETS, {"FIRST_URL": "https://a", "FOLDER": "/srv/cryo"})[
        "example"
    ].data_sets
    assert public == DataSet("public", "aws", "s3://bucket/logs/date={date}/*.parquet")
    assert private == DataSet("private", "cryo-logs", "/srv/cryo/eth__{table}__{first}_to_{last}.parquet")
    assert (own.columns["block_time"], len(own.columns)) == ("t", 10)
    folders = [data_set.folder for data_set in (public, private, own)]
    assert folders == ["s3://bucket/logs/", "/srv/cryo/", "/srv/"]


def test_a_data_set_with_an_unset_variable_is_an_error(tmp_path: Path) -> None:
    told = "data_set 'private': field 'files': FOLDER is not set; set it, or remove the data set"
    with pytest.raises(NetworksError, match=told):
        load(tmp_path, DATA_SETS, {"FIRST_URL": "https://a", "FOLDER": ""})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "private"', 'name = "public"', "data_set 'public': field 'name': is used twice; rename one"),
        ('name = "public"\n', "", "data_set 'number 1': field 'name': is missing; add it"),
        ('name = "public"', 'name = "node"', "field 'name': is 'node', which means rows of a node; write another name"),
        (
            'form = "aws"',
            'form = "azure"',
            "field 'form': is 'azure'; write one of aws, cryo-logs, cryo-transfers,",
        ),
        (
            "s3://bucket",
            "bucket",
            "field 'files': is 'bucket.*; write a path from the root of the disk, or an s3",
        ),
        ("s3://bucket", "https://bucket", "field 'files': is 'https:.*; write a path from the root of the disk"),
        ("s3://bucket", "s3://buck\\u0007et", "field 'files': is .*; write a path from the root of the disk"),
        ("/*.parquet", "/*.json", "field 'files': is .*; the names of the files must end in .parquet, .csv, .csv.gz"),
        ("/logs/date", "/../date", r"field 'files': is .*; write it without \.\. \*\* \? and \["),
        ("/logs/date", "/**/date", r"write it without \.\. \*\* \? and \["),
        ("/logs/date", "/logs?/date", r"write it without \.\. \*\* \? and \["),
        ("/logs/date", "/[a-z]/date", r"write it without \.\. \*\* \? and \["),
        ("date={date}", "logs", "field 'files': is .*; write {date}, or {first} and {last}, where the names differ"),
        ("date={date}", "{first}", "write {date}, or {first} and {last}, where the names differ"),
        ("date={date}", "{date}-{first}-{last}", "write {date}, or {first} and {last}, where the names differ"),
        ("date={date}", "{date}/{other}", "write {date}, or {first} and {last}, where the names differ"),
        (
            "eth__{table}__",
            "eth__logs__",
            "field 'files': is .*; write {table} where the names have logs or blocks: the form cryo-logs needs all of",
        ),
        ('amount = "a"', 'amounts = "a"', "field 'columns': lacks amount; add the names of these columns in the files"),
        (
            'amount = "a"',
            'amount = "a"\nvalue = "v"',
            "field 'columns': value is unknown; the form columns has block_number, block_hash, block_time",
        ),
        (
            '*.parquet"',
            '*.parquet"\ncolumns = { a = "b" }',
            "columns': a is unknown; the form aws has names",
        ),
        ('form = "aws"', "form = 1", "field 'form': Expected `str`, got `int`"),
        ('form = "aws"', 'form = "aws"\nregion = "x"', "field 'region': is unknown"),
    ],
)
def test_a_malformed_data_set_names_the_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in DATA_SETS
    with pytest.raises(NetworksError, match=message) as caught:
        load(tmp_path, DATA_SETS.replace(old, new, 1), {"FIRST_URL": "https://a", "FOLDER": "/srv/cryo"})
    assert str(caught.value).startswith(f"{tmp_path / 'networks.toml'}: network 'example': ")


OUTPUTS = """
[[network]]
name = "outputs"
display_name = "Outputs"
family = "utxo"
genesis_hash = "12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2"
pubkey_hash_prefix = 48
script_hash_prefixes = [50, 5]
segwit_prefix = "ltc"
proof_of_work = "scrypt"
mweb_prefix = "ltcmweb"
rpc = ["http://127.0.0.1:9332"]
native = { symbol = "LTC", decimals = 8 }
finality_depth = 24
poll_seconds = 30
"""


def test_fields_of_a_network_of_outputs_are_read(tmp_path: Path) -> None:
    network = load(tmp_path, OUTPUTS)["outputs"]
    genesis_hash = "12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2"
    assert network.own == UtxoDefinition(genesis_hash, 48, (50, 5), "ltc", "ltcmweb", proof_of_work=ProofOfWork.SCRYPT)
    assert (network.own.identity, network.chain_id) == (genesis_hash, None)
    assert network.parse_address("3GBygsGPvTdfKMbq4AKZZRu1sPMWPEsBfd") == "MNQ7zkgMsaV67rsjA3JuP59RC5wxRXpwgE"
    plain = load(tmp_path, OUTPUTS.replace('mweb_prefix = "ltcmweb"', "").replace("scrypt", "none"))["outputs"]
    assert plain.own == UtxoDefinition(genesis_hash, 48, (50, 5), "ltc", None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"12a7', '"12A7', "field 'genesis_hash': is not a block hash; write 64 lower-case hexadecimal digits"),
        ('"12a7', '"0x12a7', "field 'genesis_hash': is not a block hash"),
        ("pubkey_hash_prefix = 48", "pubkey_hash_prefix = 256", "field 'pubkey_hash_prefix': is 256; Expected"),
        ("[50, 5]", "[50, -1]", "field 'script_hash_prefixes': is -1; Expected `int` >= 0"),
        ("[50, 5]", "[]", "field 'script_hash_prefixes': is empty; write the canonical prefix first"),
        ("[50, 5]", "[50, 50]", "field 'script_hash_prefixes': repeats a prefix"),
        ("[50, 5]", "[50, 48]", "field 'script_hash_prefixes': repeats a prefix"),
        ("[50, 5]", "5", "field 'script_hash_prefixes': Expected `array`, got `int`"),
        ('"ltc"', '"LTC"', "field 'segwit_prefix': is not a prefix"),
        ('"ltc"', '"ltc1_"', "field 'segwit_prefix': is not a prefix"),
        ('"ltcmweb"', '""', "field 'mweb_prefix': is not a prefix"),
        ('"ltcmweb"', '"ltc"', "field 'mweb_prefix': is the same as 'segwit_prefix'"),
        ('segwit_prefix = "ltc"\n', "", "field 'segwit_prefix': is missing; add it"),
        ('"ltcmweb"', '"ltcmweb"\nextended_key_versions = []', "field 'extended_key_versions': is not a list"),
        ('"ltcmweb"', '"ltcmweb"\nextended_key_versions = ["xpub"]', "each one as 8 lower-case hexadecimal digits"),
        ('proof_of_work = "scrypt"\n', "", "field 'proof_of_work': is missing; add it"),
        ('"scrypt"', '"sha256"', "field 'proof_of_work': is 'sha256'"),
        ("finality_depth", "multicall_address", "field 'multicall_address': is unknown"),
        (
            "poll_seconds = 30",
            'poll_seconds = 30\n[[network.token]]\nsymbol = "X"\naddress = "3"\ndecimals = 8',
            "field 'token': networks of this family have none; remove it",
        ),
        (
            "poll_seconds = 30",
            'poll_seconds = 30\n[[network.feed]]\nbase = "X"\nquote = "USD"\naddress = "3"',
            "field 'feed': networks of this family have none; remove it",
        ),
        (
            "poll_seconds = 30",
            'poll_seconds = 30\n[[network.data_set]]\nname = "x"\nform = "aws"\nfiles = "/x/{date}.parquet"',
            "data_set 'x': networks of this family have no data sets; remove it",
        ),
    ],
)
def test_a_malformed_network_of_outputs_names_the_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in OUTPUTS
    with pytest.raises(NetworksError, match=message) as caught:
        load(tmp_path, OUTPUTS.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'networks.toml'}: network 'outputs': ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "example"\n', "", "network 'number 1': field 'name': is missing"),
        ('"example"', '"Example!"', "network 'Example!': field 'name': is 'Example!'"),
        ('"example"', "7", "network 7: field 'name': Expected `str`, got `int`"),
        ("[[network]]", "[[networks]]", "field 'networks': is unknown"),
        ("\n[[network]]", "version = 1\n[[network]]", "field 'version': is unknown"),
        ("[[network]]", "[[network", "is not TOML"),
    ],
)
def test_fault_of_a_malformed_file_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(NetworksError, match=message) as caught:
        load(tmp_path, EXAMPLE.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'networks.toml'}: ")


def test_a_name_and_a_contract_are_defined_once(tmp_path: Path) -> None:
    with pytest.raises(NetworksError, match="network 'example': field 'name': is used twice"):
        load(tmp_path, EXAMPLE + EXAMPLE)
    token = EXAMPLE[EXAMPLE.index("[[network.token]]") :]
    with pytest.raises(NetworksError, match="token 'USDC': field 'address': is listed twice"):
        load(
            tmp_path,
            EXAMPLE
            + token.replace("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "0xA0B86991C6218B36C1D19D4A2E9EB0CE3606EB48"),
        )


def test_a_malformed_address_from_the_environment_is_named_without_its_value(tmp_path: Path) -> None:
    with pytest.raises(NetworksError, match="FIRST_URL") as caught:
        load(tmp_path, EXAMPLE, {"FIRST_URL": "node with-secret-key"})
    assert "secret" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NetworksError, match=r"none\.toml: cannot be read"):
        load_networks(tmp_path / "none.toml", {})


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(NetworksError, match="is not TOML"):
        load_networks(tmp_path / "n.toml", {})
