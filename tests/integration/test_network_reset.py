"""A chain that was restarted under the same id: named, kept apart in an archive, and collected again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest

from cli.network import NothingCollectedError, run_reset
from pipelines.chain import reset
from pipelines.raw.database import open_warehouse
from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import instant

OLD_AMOUNT, NEW_AMOUNT = 1_000, 77


def chain(node: AnvilNode, amount: int, blocks: int) -> Token:
    """A token with transfers; on every chain it has the same address."""
    world = World(node, wallet_count=4)
    world.place_multicall()
    token = world.deploy_token("GOLD", 18)
    world.distribute(token, amount)
    for number in range(blocks):
        world.transfer(token, world.wallets[number % 2], world.wallets[2], number + 1)
        world.mine()
    return token


@pytest.fixture
def restarted() -> Iterator[AnvilNode]:
    """The chain after a restart, with a different genesis block."""
    with AnvilNode(genesis_time=GENESIS_TIME + 600) as node:
        yield node


def rows_of(found: dict[str, list[tuple[object, ...]]], network: str) -> dict[str, list[tuple[object, ...]]]:
    """The rows of one network."""
    return {table: [row for row in rows if network in row[:4]] for table, rows in found.items()}


def amounts(path: Path, network: str) -> set[int]:
    """The amounts of a network's transfers in a file."""
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.execute("select amount_raw::varchar from raw.token_transfers where network = ?", [network])
        return {int(amount) for (amount,) in rows.fetchall()}


@pytest.mark.proof("a network reset keeps the old facts apart")
def test_old_facts_are_kept_apart_and_the_new_chain_is_collected(
    node: AnvilNode, restarted: AnvilNode, make_service: MakeService, tmp_path: Path
) -> None:
    service = make_service(LocalNetwork("local", node.url), LocalNetwork("second", node.url))
    token = chain(node, OLD_AMOUNT, 5)
    tenant = service.tenant()
    service.ledger(tenant, "second")
    for ledger in ("local", "second"):
        service.token(tenant, token.address, tracked_from=instant(node, 0), ledger=ledger)
        service.good_cycle(ledger)
    before = service.raw_rows()
    old = amounts(service.settings.warehouse_path, "local")
    assert chain(restarted, NEW_AMOUNT, 7).address == token.address
    service.point_at("local", restarted.url)
    report = service.cycle()
    assert report.error is not None
    assert "`ledgermart network reset local`" in report.error
    service.good_cycle("second")
    done = run_reset(service.settings, "local")
    assert amounts(done.reset.archive, "local") == old > {OLD_AMOUNT}
    assert done.reset.rows["blocks"] == len(rows_of(before, "local")["blocks"])
    assert not any(rows for table, rows in rows_of(service.raw_rows(), "local").items() if table != "view_ranges")
    assert service.query("select count(*) from raw.network_states where network = 'local'") == [(0,)]
    service.good_cycle()
    new = amounts(service.settings.warehouse_path, "local")
    assert new >= {NEW_AMOUNT, *range(1, 8)}
    assert OLD_AMOUNT not in new
    assert rows_of(service.raw_rows(), "local") == rows_of(service.clean_rows(tmp_path), "local")
    assert rows_of(service.raw_rows(), "second") == rows_of(before, "second")


@pytest.mark.ci
def test_requests_begin_again_and_finished_attestations_stay(
    node: AnvilNode, restarted: AnvilNode, make_service: MakeService
) -> None:
    service = make_service(LocalNetwork("local", node.url))
    token = chain(node, OLD_AMOUNT, 5)
    tenant = service.tenant()
    subject = service.token(tenant, token.address)
    service.good_cycle()
    request = service.ask_history(tenant, subject, "block:1")
    service.history()
    chain(restarted, NEW_AMOUNT, 9)
    service.point_at("local", restarted.url)
    with open_warehouse(service.settings.warehouse_path) as connection:
        connection.execute(
            """
            insert into raw.attestations by name
            select
                ? as subject_key, number as attestation_number, 'local' as network, 3 as block_number,
                '0x33' as block_hash, 0 as read_count, 0 as difference_count,
                case when number = 1 then timestamp '2026-01-01' end as attested_at
            from range(1, 3) as numbers (number)
            """,
            [subject.subject_key],
        )
        connection.execute(
            """
            insert into raw.attestation_requests
            values (8, $key, 3, 1, null, 'Succeeded'), (9, $key, 3, 2, null, 'Running')
            """,
            {"key": subject.subject_key},
        )
    run_reset(service.settings, "local")
    assert service.query("select status, to_block from raw.history_requests") == [("Pending", None)]
    assert service.query("select attestation_number from raw.attestations") == [(1,)]
    assert service.query("select operation_key from raw.attestation_requests") == [(8,)]
    service.good_cycle()
    service.history()
    head = restarted.head()
    assert service.query("select to_block from raw.history_requests") == [(head,)]
    assert service.query("select from_block, to_block from raw.coverage") == [(1, head)]
    assert request.status == "Pending"


def test_an_archive_that_differs_removes_nothing(
    node: AnvilNode, make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service(LocalNetwork("local", node.url))
    token = chain(node, OLD_AMOUNT, 2)
    service.token(service.tenant(), token.address, tracked_from=instant(node, 0))
    service.good_cycle()
    before = service.raw_rows()

    class Damaging:
        """A connection that changes the archive between the copy and the comparison."""

        def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
            self.connection, self.attached = connection, 0

        def execute(self, statement: str, *arguments: object) -> duckdb.DuckDBPyConnection:
            found = self.connection.execute(statement, *arguments)
            self.attached += statement.startswith("attach ")
            if statement.startswith("attach ") and self.attached == 2:
                self.connection.execute("update archive.raw.token_transfers set amount_raw = 1")
            return found

    def reset_damaged(connection: Any, *rest: Any) -> Any:
        return reset.reset_network(cast(Any, Damaging(connection)), *rest)

    monkeypatch.setattr("cli.network.reset_network", reset_damaged)
    with pytest.raises(reset.ArchiveError, match="token_transfers"):
        run_reset(service.settings, "local")
    assert service.raw_rows() == before
    assert list((service.settings.data_dir / "archive").iterdir()) == []


def test_a_network_without_collected_rows_is_not_reset(make_service: MakeService) -> None:
    service = make_service(LocalNetwork("local", None))
    with pytest.raises(NothingCollectedError, match="'local'"):
        run_reset(service.settings, "local")


@pytest.mark.release
def test_the_commands_name_the_reset_and_publish_the_new_chain(
    node: AnvilNode, restarted: AnvilNode, ready_service: Service
) -> None:
    service = ready_service
    token = chain(node, OLD_AMOUNT, 3)
    tenant = service.tenant()
    service.ledger(tenant, "second")
    for ledger in ("local", "second"):
        service.token(tenant, token.address, tracked_from=instant(node, 0), ledger=ledger)
        service.point_at(ledger, node.url)
    assert service.ledgermart("cycle").returncode == 0
    activities = """
        select tokens.network, activities.block_hash, activities.amount_raw::varchar
        from marts.token_activities as activities
        inner join marts.tokens as tokens on activities.token_id = tokens.token_id
        order by all
    """
    before = service.published(activities)
    chain(restarted, NEW_AMOUNT, 4)
    service.point_at("local", restarted.url)
    done = service.ledgermart("cycle")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "local: eth_getBlockByNumber of block 0" in done.stderr
    states = "select network, status from marts.networks order by all"
    assert service.published(states) == [("local", "ChainReset"), ("second", "Healthy")]
    assert service.published(activities) == before
    done = service.ledgermart("network", "reset", "local", "--yes", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert Path(json.loads(done.stdout)["archive"]).is_file()
    done = service.ledgermart("cycle")
    assert done.returncode == 0, done.stdout + done.stderr
    assert service.published(states) == [("local", "Healthy"), ("second", "Healthy")]
    published = service.published(activities)
    assert [row for row in published if row[0] == "second"] == [row for row in before if row[0] == "second"]
    blocks = {restarted.rpc("eth_getBlockByNumber", [hex(n), False])["hash"] for n in range(restarted.head() + 1)}
    found = [row for row in published if row[0] == "local"]
    assert len(found) == len([row for row in before if row[0] == "local"]) + 1
    assert {row[1] for row in found} <= blocks
