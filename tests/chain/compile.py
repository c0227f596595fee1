"""Compiles the contracts of this folder: `python -m tests.chain.compile` writes artifacts.json.

The result is committed, so that chains need no compiler; a test compiles the contracts again and compares.
"""

import json
import warnings

from vyper import __version__ as vyper_version
from vyper.compiler import compile_code
from vyper.compiler.settings import Settings

from tests.chain.artifacts import ARTIFACTS_FILE, CONTRACTS_FOLDER

_EVM_VERSION = "prague"


def compile_contracts() -> str:
    """Compile every contract and return the text of artifacts.json, the same for the same sources and compiler."""
    contracts = {}
    for source in sorted(CONTRACTS_FOLDER.glob("*.vy")):
        with warnings.catch_warnings():
            # It is: Destructible is what such contracts do.
            warnings.filterwarnings("ignore", message="`selfdestruct` is deprecated")
            output = compile_code(
                source.read_text(encoding="utf-8"),
                contract_path=source.name,
                output_formats=["abi", "bytecode", "bytecode_runtime"],
                settings=Settings(evm_version=_EVM_VERSION),
                no_bytecode_metadata=True,
            )
        contracts[source.stem] = {
            "abi": output["abi"],
            "bytecode": output["bytecode"],
            "runtime": output["bytecode_runtime"],
        }
    document = {"compiler": f"vyper {vyper_version}", "evmVersion": _EVM_VERSION, "contracts": contracts}
    return json.dumps(document, indent=1) + "\n"


if __name__ == "__main__":
    ARTIFACTS_FILE.write_text(compile_contracts(), encoding="utf-8")
    print(f"wrote {ARTIFACTS_FILE.name}")
