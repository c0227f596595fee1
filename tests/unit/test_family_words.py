"""Names and terms of one family of networks stand in its own rooms: all else knows families by their protocol."""

import re
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
ROOMS = ("api", "bi", "cli", "control", "dbt_project", "figures", "ledgermart", "pipelines", "reports", "warehouse")

# Where a family may be named: its folder, its tables, its codec and definitions, and the registries.
OF_FAMILIES = re.compile(
    r"pipelines/extract/(evm/.*|families\.py)|pipelines/tables/(evm|families)\.py|control/networks/.*"
    r"|control/migrations/.*|dbt_project/models/staging/_sources\.yml|dbt_project/macros/keccak\.sql"
    r"|api/examples\.json"
)
# What only one family has.
EVERYWHERE = re.compile(
    r"\bevm\b|\berc-?\d+|\beip-?\d+|\beth_[a-z]+|multicall|solidity|chainlink|0x0{40}|\b(gas|gwei|wei)\b", re.IGNORECASE
)
# What only its raw tables have; marts show the columns under these names, which readers rely on.
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
    """The signs of a family in a file; of binary files none."""
    try:
        text = (CHECKOUT / name).read_text()
    except UnicodeDecodeError:
        return set()
    found = {match[0].lower() for match in EVERYWHERE.finditer(text)}
    if name.startswith("pipelines/"):
        found |= {match[0] for match in IN_THE_PIPELINE.finditer(text)}
    return found


def test_no_other_file_names_a_family() -> None:
    found = {name: signs_in(name) for name in tracked_files() if not OF_FAMILIES.fullmatch(name)}
    assert {name: words for name, words in found.items() if words} == {}


def test_the_signs_are_found_where_they_belong() -> None:
    """Otherwise the test above would be green for having lost its words."""
    own = [name for name in tracked_files() if name.startswith("pipelines/extract/evm/")]
    assert set().union(*map(signs_in, own)) >= {"erc-20", "multicall", "eth_getlogs", "log_index", "gas"}
