"""Bulk history: one run collects the requests of all shards, and shards take its facts from the lake."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import dagster as dg
import pytest

from pipelines.definitions import build_definitions
from pipelines.defs.bulk import BULK_JOB
from pipelines.history.bulk import BulkHistoryError, collect_bulk
from pipelines.lake.reading import ContradictedLakeError
from tests import CHECKOUT
from tests.integration.conftest import MakeService
from tests.integration.give_facts import collect_bulk_until_killed, killed_often
from tests.integration.harness import Service
from tests.integration.past import Chain, Tables, check_equal, configure, network, stored
from tests.integration.test_lake import blocks_read, facts, failures, give, in_lake, lake_of
from tests.oracles.node import instant
from tests.unit.control.postgres import new_database, unique_name
from warehouse.lakes import LakeBusyError

# dagster-dbt 0.29 asks a pydantic model for its fields in the old way.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The `__fields__` attribute:DeprecationWarning"),
    pytest.mark.usefixtures("settled_at_once"),
]


@pytest.fixture(scope="module")
def from_node(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The rows of the first shard, collected without a lake."""
    with ExitStack() as stack:
        service = Service(tmp_path_factory.mktemp("node") / "service", [network(chain.node.url)])
        stack.callback(service.close)
        configure(service, chain)
        service.history()
        service.good_cycle()
        return stored(service)


def seed(service: Service, chain: Chain, number: int) -> None:
    """Have the lake begin with one block of the chain, as if a shard had settled it."""
    header = service.node().headers([number])
    with lake_of(service).open() as opened:
        opened.load("headers", header)
        opened.run("insert into lake.blocks by name from headers")


def collect(service: Service) -> list[str]:
    """Run the bulk history of the service's network; return its messages."""
    told: list[str] = []
    collect_bulk(service.settings, service.networks["local"], lake_of(service), told.append)
    assert not list((service.settings.data_dir / "bulk").iterdir()), "the scratch folder is removed"
    return told


@pytest.fixture
def shards(lake: dict[str, str], chain: Chain, make_service: MakeService) -> list[Service]:
    """Two shards of one installation; the tenants of both request the same past."""
    first = make_service(network(chain.node.url), name="first", LEDGERMART_LOCK_WAIT_SECONDS="1", **lake)
    url = first.settings.control_url
    second = make_service(
        network(chain.node.url), name="second", LEDGERMART_SHARD="1", LEDGERMART_CONTROL_URL=url, **lake
    )
    configure(first, chain)
    configure(second, chain, "another")
    return [first, second]


@pytest.mark.release
def test_shards_take_the_facts_of_a_launched_run(
    shards: list[Service],
    lake: dict[str, str],
    chain: Chain,
    from_node: Tables,
    make_service: MakeService,
    postgres_server: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    live = make_service(network(chain.node.url), name="live", **lake)
    live.token(live.tenant(), chain.gold.address, tracked_from=instant(chain.node, chain.head - 70))
    live.good_cycle()
    give(live)
    ((settled,),) = live.query("select settled_number from raw.lake_states")
    for name, value in {**shards[1].variables, "LEDGERMART_DAGSTER_DIR": str(tmp_path / "dagster")}.items():
        monkeypatch.setenv(name, value)
    job = build_definitions(shards[1].networks).resolve_job_def(BULK_JOB)
    with new_database(postgres_server, unique_name()) as records:
        monkeypatch.setenv("DAGSTER_POSTGRES_URL", records.replace("postgresql:", "postgresql+psycopg2:"))
        with dg.DagsterInstance.from_config(str(CHECKOUT / "deploy" / "machines")) as instance:
            wrong = job.execute_in_process(instance=instance, raise_on_error=False, tags={"dagster/partition": "none"})
            assert "'none' is not a network with a lake" in str(wrong.all_events)
            done = job.execute_in_process(instance=instance, partition_key="local")
            assert done.success
            assert instance.get_run_stats(done.run_id).steps_succeeded == 1
    # The others have keys and names of tenants.
    common = {table: from_node[table] for table in ("token_transfers", "blocks", "coverage")}
    for shard, expected in zip(shards, (from_node, common), strict=True):
        assert shard.query("select count(*) from raw.token_transfers") == [(0,)]
        shard.history()
        shard.good_cycle()
        assert failures(shard) == []
        check_equal(shard, expected)
        of_node = chain.head - settled
        assert blocks_read(shard) == {"token": of_node, "wallet": of_node, "lake": 2 * settled}


@pytest.mark.release
def test_a_shard_leaves_history_to_a_bulk_run(
    shards: list[Service], chain: Chain, from_node: Tables, lake: dict[str, str]
) -> None:
    first = shards[0]
    seed(first, chain, 20)
    ((final,),) = first.query("select final_number from raw.network_states")
    with lake_of(first).bulk_run(0):
        first.history()
        # Nothing settled; no bulk run gives the newest blocks.
        of_node = chain.head - final
        assert blocks_read(first) == {"token": of_node, "wallet": of_node}
        errors = first.query("select distinct error from raw.history_requests")
        assert errors == [
            (
                "local: a bulk run collects the history of this network; the request continues with its results, or "
                "after its end",
            )
        ]
        with pytest.raises(LakeBusyError, match="local: the history is being collected by 'ledgermart: bulk history'"):
            collect(first)
        # As the bulk run gives facts meanwhile.
        with mock.patch("warehouse.lakes.Lake.bulk_run", return_value=ExitStack()):
            collect(shards[1])
        first.history()
        assert blocks_read(first) == {"token": of_node, "wallet": of_node, "lake": 2 * 20}
        assert first.query("select distinct error from raw.history_requests") == errors
    first.history()
    first.good_cycle()
    assert blocks_read(first) == {"token": chain.head - 20, "wallet": chain.head - 20, "lake": 2 * 20}
    assert first.query("select distinct error from raw.history_requests") == [(None,)]
    check_equal(first, from_node)


@pytest.mark.release
@pytest.mark.parametrize("kills", [3, 60])
def test_a_killed_run_leaves_whole_parts(
    kills: int, shards: list[Service], lake: dict[str, str], chain: Chain, from_node: Tables, tmp_path: Path
) -> None:
    first = shards[0]
    ((final,),) = first.query("select final_number from raw.network_states")
    seed(first, chain, final)
    expected = Counter((token, block) for _, block, _, _, _, _, token, *_ in from_node["token_transfers"])
    for _ in killed_often(collect_bulk_until_killed, (tmp_path / "first", chain.node.url, lake), kills, 120):
        check_whole(first, expected)
    collect(first)
    assert check_whole(first, expected) == {(1, final)}
    first.history()
    first.good_cycle()
    check_equal(first, from_node)
    assert blocks_read(first)["lake"] == 2 * final


def check_whole(service: Service, expected: Counter[tuple[str, int]]) -> set[tuple[int, int]]:
    """Check that the lake has each transfer of a covered range once; return the ranges."""
    with lake_of(service).open() as opened:
        ranges = opened.run(
            "select address, from_block, to_block from lake.coverage where subject_kind = 'token'"
        ).fetchall()
        found = Counter(opened.run("select token_address, block_number from lake.token_transfers").fetchall())
        blocks = opened.run("select block_number from lake.blocks order by all").fetchall()
    for address, first, last in ranges:
        within = {key for key in found | expected if key[0] == address and first <= key[1] <= last}
        assert {key: found[key] for key in within} == {key: expected[key] for key in within}
    assert blocks == sorted(set(blocks))
    return {(first, last) for _, first, last in ranges}


@pytest.mark.proof("bulk history gives only settled facts of this chain")
@pytest.mark.parametrize("lake", ["folder"], indirect=True)
def test_only_blocks_up_to_the_newest_that_the_lake_shares_with_the_node_are_given(
    shards: list[Service], chain: Chain
) -> None:
    newest = 30
    with pytest.raises(BulkHistoryError, match="local: the lake has no block that is final on the node; a shard has"):
        collect(shards[0])
    # Not final yet.
    seed(shards[0], chain, chain.head - 3)
    with pytest.raises(BulkHistoryError, match="local: the lake has no block that is final on the node"):
        collect(shards[0])
    seed(shards[0], chain, newest)
    hashes = "update lake.blocks set block_hash = replace(block_hash, '{}', '{}')"
    in_lake(shards[0], hashes.format("0x", "0y"))
    with pytest.raises(ContradictedLakeError, match=f"the lake has another row of blocks in block {newest}"):
        collect(shards[0])
    with lake_of(shards[0]).open() as opened:
        assert opened.run("from lake.coverage union all by name from lake.token_transfers").fetchall() == []
        opened.run(hashes.format("0y", "0x"))
        opened.run("delete from lake.blocks where block_number > ?", [newest])
    collect(shards[1])
    with lake_of(shards[0]).open() as opened:
        assert opened.run("select max(block_number) from lake.blocks").fetchall() == [(newest,)]
        covered = opened.run("select max(to_block), count(distinct address) from lake.coverage").fetchall()
        assert covered == [(newest, 4)]
        ((given,),) = opened.run("select count(*) from lake.token_transfers").fetchall()
    assert 0 < given < 85


@pytest.mark.release
def test_a_run_that_cannot_give_ends(shards: list[Service], chain: Chain) -> None:
    seed(shards[0], chain, 30)
    collect(shards[0])
    in_lake(shards[0], "update lake.token_transfers set amount_raw = '1'")
    in_lake(shards[0], "delete from lake.coverage where subject_kind = 'token'")
    before = facts(shards[0])
    with pytest.raises(ContradictedLakeError, match="the lake has another row of token_transfers in block"):
        collect(shards[1])
    assert facts(shards[0]) == before


@pytest.mark.release
def test_a_run_ends_where_the_requests_of_the_day_are_used_up(
    lake: dict[str, str], chain: Chain, make_service: MakeService
) -> None:
    service = make_service(network(chain.node.url, max_log_range=5, max_requests_per_day=40), **lake)
    configure(service, chain)
    seed(service, chain, 30)
    with pytest.raises(BulkHistoryError, match="the bulk run of local ends before all is collected: WaitingForBudget"):
        collect(service)
    ((count,),) = in_lake(service, "select sum(to_block - from_block + 1)::bigint from lake.coverage")
    assert isinstance(count, int)
    assert 0 < count < 4 * 30
