"""Terms of one network family appear only in its own modules; other code uses the families' protocol."""

import re
import subprocess

from tests import CHECKOUT

ROOMS = ("api", "bi", "cli", "control", "dbt_project", "figures", "ledgermart", "pipelines", "reports", "warehouse")

# Where a family may be named: its folder, its tables, its codec and definitions, and the registries.
OF_FAMILIES = re.compile(
    r"pipelines/extract/((evm|utxo)/.*|families\.py)|pipelines/tables/(evm|utxo|families)\.py|control/networks/.*"
    r"|control/migrations/.*|dbt_project/models/staging/_sources\.yml|dbt_project/macros/keccak\.sql"
    r"|api/http/examples\.json"
)
# Terms of one family.
EVERYWHERE = re.compile(
    r"\bevm\b|\berc-?\d+|\beip-?\d+|\beth_[a-z]+|multicall|solidity|chainlink|0x0{40}|\b(gas|gwei|wei)\b"
    r"|\butxos?(\b|_)|\b(bitcoin|litecoin|mweb|hogex|segwit|taproot|bech32m?|base58|satoshis?)\b|\bp2(pkh?|sh|wpkh|wsh|tr)\b"
    r"|\b(txids?|scriptpubkey|op_return|outpoints?|scantxoutset|mediantime|regtest|testnet4|bip[- ]?\d+)\b",
    re.IGNORECASE,
)
# Examples of priced items, which are no networks.
PRICED_ITEMS = {"control/pricing/items.py": {"bitcoin"}, "api/prices/controllers/items.py": {"bitcoin"}}
# Names of its raw tables; marts show these columns under the same names, on which readers rely.
IN_THE_PIPELINE = re.compile(r"\b(log|trace)_index\b|\b(token|internal)_transfers\b|raw\.transactions\b")


def tracked_files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *ROOMS],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.splitlines() if (CHECKOUT / name).is_file()]


def signs_in(name: str) -> set[str]:
    """Return the terms of a family in a file; none for binary files."""
    try:
        text = (CHECKOUT / name).read_text()
    except UnicodeDecodeError:
        return set()
    found = {match[0].lower() for match in EVERYWHERE.finditer(text)}
    if name.startswith("pipelines/"):
        found |= {match[0] for match in IN_THE_PIPELINE.finditer(text)}
    return found


def test_no_other_file_names_a_family() -> None:
    found = {name: signs_in(name) for name in tracked_files()}
    others = {name: words for name, words in found.items() if words and not OF_FAMILIES.fullmatch(name)}
    assert others == PRICED_ITEMS
    # With outdated terms, the lines above would prove nothing.
    own = [words for name, words in found.items() if name.startswith("pipelines/extract/evm/")]
    assert set().union(*own) >= {"erc-20", "multicall", "eth_getlogs", "log_index", "gas"}
    outputs = {"utxo", "bitcoin", "litecoin", "mweb", "segwit", "base58", "bech32"}
    assert found["control/networks/utxo.py"] >= outputs
