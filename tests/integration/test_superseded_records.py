"""Causes that supersede a record of an attestation, from made-up raw rows of some ten blocks through dbt."""

from pathlib import Path

import pytest

from pipelines.attestations.records import Attestation, begin_period, finish_attestation, list_balances
from pipelines.raw.database import open_warehouse
from pipelines.rows import RpcUsage, UsageRecord, WorkClass
from tests.integration.dbt_runner import LATER_RUN, Stores, build_over_nothing, open_marts, run_dbt
from tests.worlds.ledger import GENESIS_TIME, NETWORK, ZERO, Coverage, Reading, Subject, Transfer, World, address

TENANT, HOLDER = "ten_a", address(0xB0)
CORRECTED, FILLED, RESET = TOKENS = [address(0xA0 + number) for number in range(3)]
FIRST, GAP, ANCESTOR, HEAD = 5, (7, 8), 12, 14
# Attested blocks of each token.
ATTESTED = {CORRECTED: (9, 12), FILLED: (6, 9), RESET: (12, 13)}

Causes = dict[tuple[str, int], str | None]


@pytest.fixture(scope="module")
def causes(tmp_path_factory: pytest.TempPathFactory) -> Causes:
    """Attest blocks of three tokens, change one fact about each, and return the causes by token and block."""
    stores, world = build_over_nothing(tmp_path_factory.mktemp("superseded")), World(0)
    world.begin()
    mine(world)
    for key, token in enumerate(TOKENS):
        world.add(Subject(key, "token", TENANT, "led_a", token))
        world.track(key, key, FIRST)
        for block in (FIRST, GAP[1] + 1):
            world.transfers.append(Transfer(block, key, key, token, ZERO, HOLDER, 50, world.batch))
        # Together they confirm the balance of every block.
        for block, quantity in ((FIRST - 1, 10), (FIRST, 60), (GAP[1], 60), (GAP[1] + 1, 110)):
            read(world, token, block, quantity)
    world.coverage = [Coverage("token", token, FIRST, HEAD) for token in (CORRECTED, RESET)]
    world.coverage += [Coverage("token", FILLED, FIRST, GAP[0] - 1), Coverage("token", FILLED, GAP[1] + 1, HEAD)]
    build(world, stores)
    attest(world, stores.warehouse)
    world.begin()
    # A change without an event in block 11.
    read(world, CORRECTED, 10, 110)
    read(world, CORRECTED, 11, 115)
    world.coverage.append(Coverage("token", FILLED, *GAP))
    world.fork_at(ANCESTOR)
    mine(world)
    world.coverage = [row._replace(last=HEAD) if row.last == ANCESTOR else row for row in world.coverage]
    build(world, stores)
    return recorded(stores)


def mine(world: World) -> None:
    """Add empty blocks up to the head."""
    world.hashes |= {block: f"0x{block:08x}{world.fork:056x}" for block in range(world.head + 1, HEAD + 1)}
    world.head = world.known_head = HEAD


def read(world: World, token: str, block: int, quantity: int) -> None:
    world.readings.append(Reading(token, HOLDER, block, quantity, "Check", world.batch, {TENANT: world.batch}))


def build(world: World, stores: Stores) -> None:
    world.write(stores.warehouse)
    run_dbt(stores, *LATER_RUN, "--select", "+attestations")
    world.transformed = world.batch


def attest(world: World, warehouse: Path) -> None:
    """Write the records; no balance needs another reading."""
    with open_warehouse(warehouse) as connection:
        for key, token in enumerate(TOKENS):
            for number, block in enumerate(ATTESTED[token], start=1):
                found = Attestation(key, number, "token", TENANT, token, block, world.hashes[block])
                begin_period(connection, NETWORK, key, block, found.block_hash, GENESIS_TIME)
                assert list_balances(connection, found) == []
                spent = UsageRecord(WorkClass.ATTESTATION, "balances", RpcUsage(0, 0))
                finish_attestation(connection, NETWORK, found, None, spent, world.batch)


def recorded(stores: Stores) -> Causes:
    with open_marts(stores) as connection:
        rows = connection.execute("select subject_key, block_number, superseded_by from marts.attestations").fetchall()
    return {(TOKENS[key], block): cause for key, block, cause in rows}


@pytest.mark.proof("a corrected balance supersedes the records after its change")
def test_a_corrected_balance_supersedes_the_record_after_the_change_alone(causes: Causes) -> None:
    assert (causes[CORRECTED, 9], causes[CORRECTED, 12]) == (None, "OtherBalance")


@pytest.mark.proof("a filled gap supersedes the records after it")
def test_a_filled_gap_supersedes_the_record_after_it_alone(causes: Causes) -> None:
    assert (causes[FILLED, 6], causes[FILLED, 9]) == (None, "FilledGap")


@pytest.mark.proof("a chain reset supersedes the records of replaced blocks")
def test_a_reset_supersedes_the_record_of_a_replaced_block_alone(causes: Causes) -> None:
    assert (causes[RESET, 12], causes[RESET, 13]) == (None, "ChainReset")
