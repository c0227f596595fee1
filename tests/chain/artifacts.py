"""The compiled contracts, as committed in artifacts.json. Compiling is in `compile`."""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONTRACTS_FOLDER = Path(__file__).parent / "contracts"
ARTIFACTS_FILE = Path(__file__).parent / "artifacts.json"


@dataclass(frozen=True)
class Artifact:
    """One compiled contract: `bytecode` deploys it, `runtime` is its deployed code; both as 0x text."""

    abi: list[dict[str, Any]]
    bytecode: str
    runtime: str


@functools.cache
def artifact(name: str) -> Artifact:
    """Return a contract by the name of its source file.

    Raises:
        KeyError: no contract of that name.
    """
    return Artifact(**json.loads(ARTIFACTS_FILE.read_text(encoding="utf-8"))["contracts"][name])
