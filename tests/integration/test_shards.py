"""Pipelines of two shards on one control store: each builds its tenants alone, as if the others did not exist."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import make_url

from control import operations
from control.clock import stored_now
from control.operations import Report, Status
from control.store import sqlite_file
from pipelines.raw.database import open_warehouse
from pipelines.raw.lost import find_lost
from pipelines.tenants.versions import advance
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import WITHOUT_VIEWS, Stores, build_over_nothing, run_dbt
from tests.integration.harness import LocalNetwork, Service
from tests.integration.transformed import content
from tests.oracles.node import instant

Rows = list[tuple[object, ...]]
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:")


def collect(service: Service) -> Stores:
    """Run a pipeline once, with past data; the views of dbt exist before."""
    stores = build_over_nothing(service.settings.data_dir)
    service.good_cycle()
    service.history()
    with open_warehouse(stores.warehouse) as connection:
        advance(connection, 0, service.settings.as_of_seconds)
    return stores


def build(stores: Stores) -> dict[str, Rows]:
    """Build the marts, and return their rows."""
    run_dbt(stores, "run", "--exclude", *WITHOUT_VIEWS)
    return content(stores)


def undated(rows: Rows, began: str) -> Rows:
    """Replace times of the test itself, when the pipeline read something; times of blocks are earlier."""
    return [
        tuple("now" if isinstance(cell, str) and _TIME.match(cell) and cell >= began else cell for cell in row)
        for row in rows
    ]


def copy_without_other_shards(service: Service, target: Path) -> None:
    """Copy the control store without the tenants of other shards, and without every row that refers to them."""
    target.parent.mkdir(parents=True)
    source = sqlite_file(make_url(service.settings.control_url))
    assert source is not None
    with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(target)) as copy:
        original.backup(copy)
        copy.execute("delete from tenants where shard <> ?", [service.settings.shard])
        while broken := copy.execute("pragma foreign_key_check").fetchall():
            for table, rowid, *_ in broken:
                copy.execute(f"delete from {table} where rowid = ?", [rowid])
        copy.commit()


@pytest.mark.proof("the marts of a shard equal those without the tenants of other shards")
@pytest.mark.parametrize("built", [{1}, pytest.param({0, 1}, marks=pytest.mark.release)])
def test_marts_of_a_shard_equal_those_without_the_other_tenant(
    node: AnvilNode, make_service: MakeService, tmp_path: Path, built: set[int]
) -> None:
    began = str(stored_now())
    world = World(node, wallet_count=4)
    gold, tin = world.deploy_token("GOLD", 18), world.deploy_token("TIN", 0)
    for token in (gold, tin):
        world.distribute(token, 1_000)
    opening = node.head() + 1
    world.transfer_many(20, [gold, tin], per_block=4)
    network = LocalNetwork("local", node.url)
    first = make_service(network, name="first")
    second = make_service(
        network, name="second", LEDGERMART_SHARD="1", LEDGERMART_CONTROL_URL=first.settings.control_url
    )
    services, tenants, requests = (first, second), [], []
    for service, tokens in zip(services, ((gold,), (gold, tin)), strict=True):
        tenant = service.tenant(f"of shard {service.settings.shard}")
        subjects = [service.token(tenant, token.address, tracked_from=instant(node, opening)) for token in tokens]
        service.wallet(tenant, world.wallets[0], tracked_from=instant(node, opening))
        tenants.append(tenant)
        requests.append(service.ask_history(tenant, subjects[0], "creation"))
    for shard in built:
        copy_without_other_shards(services[shard], tmp_path / f"alone {shard}" / "data" / "control.db")

    stores = [collect(first)]
    # The pipeline of shard 0 reported on its own operation, and left the other one as it was.
    assert second.operation(requests[0]).status is Status.RUNNING
    assert second.operation(requests[1]) == requests[1]
    # An operation that shard 0 finished does not mean that shard 1 lost its warehouse.
    with first.store.write() as session:
        operations.report(session, 0, requests[0].operation_key, Report(status=Status.SUCCEEDED))
    assert find_lost(second.settings) is None
    stores.append(collect(second))
    assert second.operation(requests[1]).status is Status.RUNNING
    for service, tenant in zip(services, tenants, strict=True):
        for table in ("tenants", "ledgers", "subjects"):
            assert set(service.query(f"select tenant_id from raw.control_{table}")) == {(tenant.tenant_id,)}

    for shard in built:
        found = build(stores[shard])
        for mart in ("tokens", "wallets", "token_activities", "balance_changes"):
            assert found[mart], mart
        assert tenants[shard].tenant_id in repr(found)
        assert tenants[1 - shard].tenant_id not in repr(found)
        alone = make_service(network, name=f"alone {shard}", LEDGERMART_SHARD=str(shard))
        expected = build(collect(alone))
        assert found.keys() == expected.keys()
        for mart in expected.keys() - {"collection_paces"}:  # the measured speed of the collection
            assert (mart, undated(found[mart], began)) == (mart, undated(expected[mart], began))
