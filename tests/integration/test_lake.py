"""Facts that shards share in a lake: equal to those of the node, exact, and never half-written."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner

from cli.lake import UnknownNetwork, examine_lakes, run_migration
from cli.main import main
from cli.network import run_reset
from cli.status import print_status, read_status
from cli.terminal import Terminal
from control.operations import Status
from control.settings import SettingsError, load_settings
from pipelines.chain import finality, reset
from pipelines.defs.maintenance import lake_maintenance
from pipelines.lake import giving
from pipelines.lake.moving import DifferentLakeError, compare, move_to_lake
from pipelines.lake.tables import open_lake
from pipelines.raw.database import open_warehouse
from tests.chain.node import AnvilNode
from tests.chain.process import free_port
from tests.chain.world import World
from tests.integration.conftest import MakeService
from tests.integration.give_facts import give_until_killed, killed_often
from tests.integration.harness import LocalNetwork, Service
from tests.integration.past import Chain, Tables, check_equal, collect, network, stored
from tests.oracles.node import instant
from tests.unit.control.postgres import new_database, unique_name
from warehouse.lakes import Lake, LakeBusyError

pytestmark = pytest.mark.usefixtures("settled_at_once")


@pytest.fixture(scope="module")
def from_node(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    with ExitStack() as stack:
        service = Service(tmp_path_factory.mktemp("node") / "service", [network(chain.node.url)], {})
        stack.callback(service.close)
        collect(service, chain)
        yield stored(service)


def blocks_read(service: Service) -> dict[str, int]:
    """Return the numbers of past blocks that were read for history, by kind of work."""
    return dict(
        service.query(
            "select work, sum(unit_count)::bigint from raw.requests_spent "
            "where purpose = 'History' and work in ('token', 'wallet', 'lake') group by work"
        )
    )


def give(service: Service) -> None:
    """Settle the final blocks, and give their facts."""
    service.good_cycle()
    service.good_cycle()
    assert service.query("select call, detail from raw.collection_failures") == []
    assert service.query("select count(*) from raw.lake_states") == [(1,)]


@pytest.fixture
def first(lake: dict[str, str], chain: Chain, make_service: MakeService) -> Service:
    """A shard that has given its facts."""
    service = make_service(network(chain.node.url), name="first", **lake)
    collect(service, chain)
    give(service)
    return service


@pytest.mark.proof("a shard takes history from the lake without asking the node")
def test_another_shard_stores_the_same_without_asking_the_node(
    first: Service, lake: dict[str, str], chain: Chain, from_node: Tables, make_service: MakeService
) -> None:
    check_equal(first, from_node)
    second = make_service(network(chain.node.url), name="second", **lake)
    collect(second, chain)
    assert second.query("select call, detail from raw.collection_failures") == []
    check_equal(second, from_node)
    ((settled,),) = first.query("select settled_number from raw.lake_states")
    assert settled > 30
    assert blocks_read(first) == {"token": chain.head, "wallet": chain.head}
    of_node = chain.head - settled
    assert blocks_read(second) == {"token": of_node, "wallet": of_node, "lake": 2 * settled}
    origins = "select distinct provider, data_set from raw.coverage order by all"
    assert second.query(origins) == first.query(origins)


def failures(service: Service) -> list[str]:
    return [
        detail
        for (detail,) in service.query(
            "select detail from raw.collection_failures where call = 'lake' order by batch_id"
        )
    ]


def lake_of(service: Service, lake: Mapping[str, str] = MappingProxyType({})) -> Lake:
    """Return the lake of the service's network, or that of other settings."""
    found = open_lake(load_settings({**service.variables, **lake}), service.networks["local"])
    assert found is not None
    return found


def in_lake(service: Service, statement: str) -> list[tuple[object, ...]]:
    """Run a statement on the lake of the service's network, and return its rows."""
    with lake_of(service).open() as opened:
        return opened.run(statement).fetchall()


def facts(service: Service) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows of the lake, by table, without times of collection."""
    with lake_of(service).open() as opened:
        return {
            table: opened.run(f"select {columns} from lake.{table} order by all").fetchall()
            for table, columns in {
                "token_transfers": "*",
                "blocks": "*",
                "coverage": "* exclude (collected_at)",
                "balance_observations": "*",
                "supply_observations": "*",
            }.items()
        }


@pytest.mark.release
def test_a_reading_is_given_once_its_block_is_settled(
    lake: dict[str, str], node: AnvilNode, make_service: MakeService
) -> None:
    world = World(node, wallet_count=3)
    gold = world.deploy_token("GOLD", 18)
    world.distribute(gold, 100)
    service = make_service(LocalNetwork("local", node.url), **lake)
    tenant = service.tenant()
    service.token(tenant, gold.address, tracked_from=instant(node, 2))
    service.wallet(tenant, world.wallets[0], tracked_from=instant(node, 2))
    for _ in range(4):
        world.transfer_many(3, [gold], per_block=3)
        for _ in range(3):
            world.mine()
        service.good_cycle()
    # As after a history that was given in the last of these cycles, when their heads were not settled.
    with open_warehouse(service.settings.warehouse_path) as connection:
        connection.execute("update raw.lake_states set batch_id = (select max(batch_id) from raw.batches)")
    # The node calls a block final after 64 others.
    for _ in range(70):
        world.mine()
    given = "select given_at from raw.lake_states"
    service.good_cycle()
    service.good_cycle()
    after = service.query(given)
    service.good_cycle()
    assert service.query(given) == after, "nothing is given without new settled facts"
    ((settled,),) = service.query("select settled_number from raw.lake_states")
    expected = service.query(
        "select token_address, holder_address, block_number, quantity_raw::varchar from raw.balance_observations "
        "where block_number <= ? order by all",
        [settled],
    )
    columns = "token_address, holder_address, block_number, quantity_raw"
    assert in_lake(service, f"select {columns} from lake.balance_observations order by all") == expected
    assert len({row[2] for row in expected}) > 2


@pytest.mark.release
@pytest.mark.parametrize("kills", [4, 60])
def test_a_killed_writer_leaves_whole_parts(
    kills: int, lake: dict[str, str], chain: Chain, make_service: MakeService, tmp_path: Path
) -> None:
    service = make_service(network(chain.node.url), name="killed", **lake)
    with mock.patch.object(giving, "give", return_value=0):
        collect(service, chain)
        service.good_cycle()
    for _ in killed_often(give_until_killed, (tmp_path / "killed", chain.node.url, lake), kills, 60):
        # The commits of a killed writer are whole: every row of a covered range is there, once.
        for token, first, last in in_lake(
            service, "select address, from_block, to_block from lake.coverage where subject_kind = 'token'"
        ):
            rows = f"where token_address = '{token}' and block_number between {first} and {last}"
            assert in_lake(service, f"select count(*) from lake.token_transfers {rows}") == service.query(
                f"select count(*) from raw.token_transfers {rows}"
            )
    give(service)
    whole = facts(service)
    expected = service.query(
        """
        select * exclude (network, batch_id) replace (amount_raw::varchar as amount_raw)
        from raw.token_transfers order by all
        """
    )
    assert whole["token_transfers"] == expected
    assert len(whole["coverage"]) == len(set(whole["coverage"])) == 4
    assert [row[-1] for row in whole["blocks"]] == sorted(row[-1] for row in whole["blocks"])


@pytest.mark.release
def test_a_lake_of_another_chain_is_not_taken(
    first: Service, lake: dict[str, str], chain: Chain, from_node: Tables, make_service: MakeService
) -> None:
    in_lake(first, "update lake.blocks set block_hash = replace(block_hash, '0x', '0y')")
    second = make_service(network(chain.node.url), name="second", **lake)
    collect(second, chain)
    assert "the lake has another row of blocks in block" in failures(second)[0]
    assert blocks_read(second) == {}
    assert second.query("select count(*) from raw.token_transfers") == [(0,)]
    assert "the lake has another" in second.query("select error from raw.history_requests")[0][0]


@pytest.mark.proof("live data does not wait for a lake that is down")
def test_live_data_does_not_wait_for_the_lake(
    empty_database: str, chain: Chain, make_service: MakeService, tmp_path: Path
) -> None:
    settings = {"LEDGERMART_LAKE": f"ducklake:postgres:{empty_database}-gone", "LEDGERMART_LAKE_DATA": str(tmp_path)}
    service = make_service(network(chain.node.url), **settings)
    tenant = service.tenant()
    service.token(tenant, chain.gold.address, tracked_from=instant(chain.node, 2))
    request = service.ask_history(tenant, service.token(tenant, chain.coin.address), "block:0")
    service.good_cycle()
    assert service.query("select count(*) > 0 from raw.token_transfers") == [(True,)]
    service.history()
    # A request waits: an outage must not cost the node's requests of days.
    assert service.operation(request).status is Status.RUNNING
    assert (
        "local: the lake does not answer, or refuses" in service.query("select error from raw.history_requests")[0][0]
    )
    assert all("check PostgreSQL" in detail for detail in failures(service))


def migrate(service: Service, lake: dict[str, str], *, is_back: bool = False) -> dict[str, Any]:
    """Move facts; return the result of the network."""
    settings = load_settings({**service.variables, **lake})
    (found,) = run_migration(settings, (), lambda _: None, is_back=is_back)["networks"]
    return dict(found)


@pytest.mark.ci
@pytest.mark.proof("facts move from a warehouse to a lake and back")
def test_a_warehouse_moves_to_a_lake_and_back(
    lake: dict[str, str], chain: Chain, from_node: Tables, make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service(network(chain.node.url))
    monkeypatch.setenv("LOCAL_RPC_URL", chain.node.url)
    collect(service, chain)
    service.good_cycle()
    service.good_cycle()
    with pytest.raises(SettingsError, match="set LEDGERMART_LAKE and LEDGERMART_LAKE_DATA"):
        migrate(service, {})
    with pytest.raises(UnknownNetwork, match="network 'other' is not defined; those with lakes are local"):
        run_migration(load_settings({**service.variables, **lake}), ["other"], lambda _: None, is_back=False)
    done = CliRunner().invoke(main, ["migrate-warehouse", "lake", "--json"], env={**service.variables, **lake})
    assert done.exit_code == 0, done.stderr
    (first,) = json.loads(done.stdout)["networks"]
    settled = first["settledBlock"]
    assert settled > 30
    assert f"local: equal up to block {settled}" in done.stderr
    assert first["rows"] > 0
    assert set(first["compared"]) >= {"token_transfers", "blocks", "coverage", "balance_observations"}
    assert first["compared"]["token_transfers"] > 0
    assert migrate(service, lake) == {**first, "rows": 0}
    assert migrate(service, lake, is_back=True) == {**first, "rows": 0}
    with open_warehouse(service.settings.warehouse_path) as connection:
        connection.execute("update raw.coverage set from_block = ? where from_block <= ?", [settled + 1, settled])
        connection.execute("delete from raw.token_transfers where block_number <= ?", [settled])
    back = migrate(service, lake, is_back=True)
    assert back["rows"] == first["compared"]["token_transfers"]
    assert back["compared"]["token_transfers"] == first["compared"]["token_transfers"]
    check_equal(service, {table: rows for table, rows in from_node.items() if table != "coverage"})


@pytest.fixture(scope="module")
def given(
    chain: Chain, postgres_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, Lake]]:
    """A service that has given its facts to a lake in a folder."""
    folder = tmp_path_factory.mktemp("given")
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(finality, "SETTLED_AFTER", timedelta(0)))
        url = stack.enter_context(new_database(postgres_server, unique_name()))
        lake = {"LEDGERMART_LAKE": f"ducklake:postgres:{url}", "LEDGERMART_LAKE_DATA": str(folder / "lake")}
        service = Service(folder / "service", [network(chain.node.url)], lake)
        stack.callback(service.close)
        collect(service, chain)
        give(service)
        yield service, lake_of(service, lake)


_BLOCK = "where block_number = $block"


@pytest.mark.proof("a difference between lake and warehouse names the table and a block")
@pytest.mark.parametrize(
    ("table", "changed"),
    [
        ("token_transfers", f"insert into lake.token_transfers from lake.token_transfers {_BLOCK}"),
        ("coverage", "delete from lake.coverage where $block between from_block and to_block"),
        ("balance_observations", f"update lake.balance_observations set tenant_ids = [] {_BLOCK}"),
        *(
            pytest.param(table, changed, marks=pytest.mark.release)
            for table, changed in (
                ("token_transfers", f"update lake.token_transfers set amount_raw = '7' {_BLOCK}"),
                ("token_transfers", f"delete from lake.token_transfers {_BLOCK}"),
                ("blocks", f"update lake.blocks set block_time = block_time + interval 1 second {_BLOCK}"),
            )
        ),
    ],
)
def test_a_difference_names_table_and_block(given: tuple[Service, Lake], table: str, changed: str) -> None:
    service, shared = given
    name = "block_number" if table != "coverage" else "from_block"
    ((block,),) = service.query(
        f"select max({name}) from raw.{table} where {name} <= (select settled_number from raw.lake_states)"
    )
    words = f"table {table} of the lake differs from the warehouse, for example in block {block}; nothing was removed"
    with open_warehouse(service.settings.warehouse_path) as connection, shared.open() as opened:
        opened.run("begin")
        opened.run(changed, {"block": block})
        with pytest.raises(DifferentLakeError, match=words):
            compare(connection, opened, service.networks["local"])
        opened.run("rollback")
        assert compare(connection, opened, service.networks["local"])[table] > 0


@pytest.mark.release
def test_a_difference_is_one_line_and_exit_code_1(given: tuple[Service, Lake]) -> None:
    service, shared = given
    with shared.open() as opened:
        opened.run("insert into lake.token_transfers from lake.token_transfers")
    done = CliRunner().invoke(main, ["migrate-warehouse", "lake"], env=service.variables)
    assert done.exit_code == 1
    assert "local: the table token_transfers of the lake differs from the warehouse" in done.stderr.splitlines()[-1]
    with shared.open() as opened:
        shared.clear(opened)
    assert migrate(service, {})["compared"]["token_transfers"] > 0


@pytest.mark.proof("facts that a restored lake lacks are given again")
def test_facts_that_a_restored_lake_lacks_are_given_again(given: tuple[Service, Lake]) -> None:
    service, shared = given
    readings = "select count(*) from lake.balance_observations"
    with shared.open() as opened:
        before = opened.run(readings).fetchall()
        shared.clear(opened)
    service.good_cycle()
    with shared.open() as opened:
        assert opened.run(readings).fetchall() < before
    migrate(service, {})
    with shared.open() as opened:
        assert opened.run(readings).fetchall() == before


@pytest.mark.release
def test_an_interrupted_move_continues_after_its_last_part(given: tuple[Service, Lake]) -> None:
    service, shared = given
    with shared.open() as opened:
        shared.clear(opened)
    local = service.networks["local"]
    with (
        mock.patch.object(giving, "MOST_ROWS", 30),
        open_warehouse(service.settings.warehouse_path) as connection,
        pytest.raises(KeyboardInterrupt),
    ):
        move_to_lake(connection, local, shared, 1, mock.Mock(side_effect=[None, KeyboardInterrupt]))
    with shared.open() as opened:
        ((stored,),) = opened.run("select count(*) from lake.token_transfers").fetchall()
    rest = migrate(service, {})
    assert 0 < stored < rest["compared"]["token_transfers"]
    readings = rest["compared"]["balance_observations"] + rest["compared"]["supply_observations"]
    assert stored + rest["rows"] == rest["compared"]["token_transfers"] + readings


@pytest.mark.release
def test_the_nightly_job_merges_files_and_changes_no_fact(
    given: tuple[Service, Lake], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, shared = given
    for name, value in service.variables.items():
        monkeypatch.setenv(name, value)
    with open_warehouse(service.settings.warehouse_path) as connection, shared.open() as opened:
        before = compare(connection, opened, service.networks["local"])
        # As of other shards.
        for number in (1_000, 1_001, 1_002):
            opened.run(f"insert into lake.blocks select * replace ({number} as block_number) from lake.blocks limit 1")
    with shared.writing("upkeep of another shard", 1):
        monkeypatch.setenv("LEDGERMART_LOCK_WAIT_SECONDS", "1")
        assert lake_maintenance.execute_in_process().success
    assert lake_maintenance.execute_in_process().success
    with open_warehouse(service.settings.warehouse_path) as connection, shared.open() as opened:
        assert compare(connection, opened, service.networks["local"]) == before
        assert opened.run("select count(*) from ducklake_list_files('lake', 'blocks')").fetchall() == [(1,)]


def test_doctor_and_status_show_the_lake(given: tuple[Service, Lake]) -> None:
    service, _ = given
    ((settled,),) = service.query("select settled_number from raw.lake_states")
    (found,) = examine_lakes(service.settings, service.networks.values())
    assert found.verdict == "ok"
    assert found.detail.startswith(f"facts up to block {settled}, ")
    status = read_status(service.settings)
    assert [row["lake"]["settledBlock"] for row in status["networks"]] == [settled]
    shown = StringIO()
    print_status(status, Terminal(file=shown, width=200))
    assert f"local: the lake has facts up to block {settled}, given " in shown.getvalue()


@pytest.mark.ci
def test_doctor_creates_no_lake_and_shows_no_password(
    lake: dict[str, str], chain: Chain, make_service: MakeService
) -> None:
    service = make_service(network(chain.node.url), **lake)
    networks = service.networks.values()
    if not lake["LEDGERMART_LAKE_DATA"].startswith("s3://"):
        Path(lake["LEDGERMART_LAKE_DATA"]).mkdir()
    (new,) = examine_lakes(service.settings, networks)
    assert (new.check, new.verdict) == ("lake local", "note")
    assert not lake_of(service, lake).exists()
    away = f"ducklake:postgres:postgresql://someone:the-password@127.0.0.1:{free_port()}/nothing"
    for wrong, fix in (
        ({"LEDGERMART_LAKE": away}, "PostgreSQL"),
        ({"LEDGERMART_LAKE_DATA": "s3://none/x"}, "the store"),
    ):
        (found,) = examine_lakes(load_settings({**service.variables, **lake, **wrong}), networks)
        assert (found.verdict, fix in found.detail) == ("wrong", True), found
        assert "the-password" not in found.detail


@pytest.mark.release
def test_a_false_row_of_a_shard_is_repaired_from_the_lake(
    first: Service, lake: dict[str, str], chain: Chain, from_node: Tables, make_service: MakeService
) -> None:
    second = make_service(network(chain.node.url), name="second", **lake)
    collect(second, chain)
    before = facts(first)
    with open_warehouse(second.settings.warehouse_path) as connection:
        connection.execute(
            "update raw.token_transfers set amount_raw = 1::bignum "
            "where block_number = (select min(block_number) from raw.token_transfers)"
        )
    assert stored(second)["token_transfers"] != from_node["token_transfers"]
    asked = CliRunner().invoke(main, ["network", "reset", "local"], env={**second.variables, **lake}, input="n")
    assert "Its facts in a lake are deleted for all shards." in asked.output
    command = ["network", "reset", "local", "--keep-lake", "--json"]
    done = CliRunner().invoke(main, command, env={**second.variables, **lake}, input="y")
    assert '"isLakeCleared": false' in done.output
    assert "in the lake" not in done.output
    assert facts(first) == before
    second.good_cycle()
    read_before = blocks_read(second)["lake"]
    second.history()
    second.good_cycle()
    check_equal(second, from_node)
    assert blocks_read(second)["lake"] > read_before
    assert facts(first) == before


@pytest.mark.release
def test_a_reset_deletes_the_facts_of_the_lake_and_can_be_repeated(
    lake: dict[str, str], chain: Chain, make_service: MakeService
) -> None:
    service = make_service(network(chain.node.url), LEDGERMART_LOCK_WAIT_SECONDS="1", **lake)
    collect(service, chain)
    give(service)
    shared = lake_of(service, lake)

    def rows() -> list[tuple[int]]:
        with shared.open() as opened:
            return opened.run(
                "select count(*) from lake.token_transfers union all from (select count(*) from lake.coverage)"
            ).fetchall()

    before = rows()
    assert min(before) > (0,)
    with shared.bulk_run(0), pytest.raises(LakeBusyError, match="the history is being collected by"):
        run_reset(service.settings, "local")
    assert rows() == before
    # The lake of another chain, which another shard has collected after its own reset, stays.
    with shared.open() as opened:
        opened.run("create table lake.aside as from lake.blocks")
        opened.run("update lake.blocks set block_hash = '0x' || block_number")
    with mock.patch.object(reset, "open_batch", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        run_reset(service.settings, "local")
    assert rows() == before
    with shared.open() as opened:
        opened.run("delete from lake.blocks")
        opened.run("insert into lake.blocks from lake.aside")
    with mock.patch.object(reset, "open_batch", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        run_reset(service.settings, "local")
    assert rows() == [(0,), (0,)]
    assert service.query("select count(*) from raw.lake_states") == [(1,)]
    assert not run_reset(service.settings, "local").is_lake_cleared
    assert service.query("select count(*) from raw.lake_states") == [(0,)]
