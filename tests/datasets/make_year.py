"""`python -m tests.datasets.make_year FOLDER`: a year of a USDC-like token as files of AWS Open Data's schema.

The chain has chain id 1 and the token at USDC's address, so `docs/how-to/history-from-files.md` works on it unchanged.
The command writes the files, serves node and files until Ctrl-C, and prints the variables that point the service there.
"""

import argparse
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from tests.chain.artifacts import artifact
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World, call_data, holder_at
from tests.datasets.chain_files import write_aws
from tests.datasets.object_store import ObjectStore

USDC = Token("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", "TestToken", "USDC", 6)
FIRST_DAY, LAST_DAY = date(2023, 1, 1), date(2023, 12, 31)
DAYS_A_BLOCK = 10
BUCKET, PREFIX = "aws-public-blockchain", "v1.0/eth"
TRANSFERS_A_BLOCK = 100

_SUPPLY = 30_000_000_000 * 10**6
_MOST = 50_000 * 10**6
# Holders that receive from the deployer, beside those that also send.
_RECEIVERS = 300
# TestToken's storage: name, symbol and decimals.
_SLOTS_OF_METADATA = 6
# The node calls a block final after 64 others.
_BLOCKS_AFTER = 66


@dataclass(frozen=True)
class Year:
    """A chain with a block on each tenth day, each with transfers of the token; all blocks of the year are final."""

    node: AnvilNode
    world: World
    paths: Sequence[Path]


@contextmanager
def year_of_files(folder: Path) -> Iterator[Year]:
    """Run a node with the chain, and write its logs as files of AWS Open Data into `folder`."""
    with AnvilNode(chain_id=1, genesis_time=_noon(FIRST_DAY - timedelta(days=14))) as node:
        world = World(node, wallet_count=20)
        world.place_multicall()
        _place_usdc(world)
        world.submit(world.deployer, USDC.address, call_data("TestToken", "mint", world.deployer, _SUPPLY))
        world.distribute(USDC, _MOST)
        for number in range(-1, (LAST_DAY - FIRST_DAY).days // DAYS_A_BLOCK + 1 + _BLOCKS_AFTER):
            _make_block(world, FIRST_DAY + timedelta(days=DAYS_A_BLOCK * number))
        yield Year(node, world, write_aws(node, folder, tables=["logs"]))


def _place_usdc(world: World) -> None:
    """Put the code and the metadata of a deployed token at USDC's address."""
    model = world.deploy("TestToken", "USD Coin", USDC.symbol, USDC.decimals, 0, 0, world.deployer)
    world.node.set_code(USDC.address, artifact("TestToken").runtime)
    for slot in range(_SLOTS_OF_METADATA):
        value = world.node.rpc("eth_getStorageAt", [model, hex(slot), "latest"])
        world.node.rpc("anvil_setStorageAt", [USDC.address, f"0x{slot:064x}", value])


def _make_block(world: World, day: date) -> None:
    """Make the block at noon of a day: transfers of the deployer, and some among wallets."""
    first = world.random.randrange(_RECEIVERS)
    events = TRANSFERS_A_BLOCK - 10
    amount = world.random.randint(1, _MOST)
    data = call_data("TestToken", "emit_many", events, amount, first, _RECEIVERS)
    world.submit(world.deployer, USDC.address, data, gas=10_000_000)
    for _ in range(TRANSFERS_A_BLOCK - events):
        sender, receiver = world.random.sample(world.wallets, 2)
        world.transfer(USDC, sender, receiver, world.random.randint(1, _MOST // 1_000))
    world.mine(_noon(day))


def _noon(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp())


def holders() -> list[str]:
    """Return all addresses that receive in bulk."""
    return [holder_at(number) for number in range(_RECEIVERS)]


@contextmanager
def served(folder: Path) -> Iterator[ObjectStore]:
    """Serve the files of a folder as AWS Open Data does, without credentials."""
    with ObjectStore(is_public=True) as store:
        store.make_bucket(BUCKET)
        store.put_folder(BUCKET, PREFIX, folder)
        yield store


def main() -> None:
    """Write the files, and serve them and the node until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m tests.datasets.make_year", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder for the files; it need not exist")
    folder = parser.parse_args().folder
    with year_of_files(folder) as year, served(folder) as store:
        print(f"# {len(year.paths)} files in {folder}; Ctrl-C ends node and store")
        print(f"export ETHEREUM_RPC_URL={year.node.url}")
        print(f"export AWS_ENDPOINT_URL={store.url}", flush=True)
        signal.sigwait([signal.SIGINT, signal.SIGTERM])


if __name__ == "__main__":
    main()
