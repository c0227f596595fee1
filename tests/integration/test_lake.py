"""Facts that shards share in a lake: equal to those of the node, exact, and never half-written."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest

from pipelines.chain import finality
from tests.datasets.object_store import ObjectStore
from tests.integration.conftest import MakeService
from tests.integration.harness import Service
from tests.integration.past import Chain, Tables, chain_with_past, check_equal, collect, network, stored
from tests.unit.control.conftest import unique_name
from tests.unit.control.postgres import new_database

_BUCKET = "facts"


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with chain_with_past() as made:
        yield made


@pytest.fixture(scope="module")
def objects() -> Iterator[ObjectStore]:
    with ObjectStore() as store:
        store.make_bucket(_BUCKET)
        yield store


@pytest.fixture
def catalogue(postgres_server: str) -> Iterator[str]:
    with new_database(postgres_server, unique_name()) as url:
        yield url


@pytest.fixture(params=["s3", pytest.param("folder", marks=pytest.mark.long)])
def lake(
    request: pytest.FixtureRequest, catalogue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """Settings of a lake of its own."""
    data = str(tmp_path / "lake")
    if request.param == "s3":
        for name, value in request.getfixturevalue("objects").variables.items():
            monkeypatch.setenv(name, value)
        data = f"s3://{_BUCKET}/{catalogue.rpartition('/')[2]}"
    return {"LEDGERMART_LAKE": f"ducklake:postgres:{catalogue}", "LEDGERMART_LAKE_DATA": data}


@pytest.fixture(autouse=True)
def settled_at_once() -> Iterator[None]:
    with mock.patch.object(finality, "SETTLED_AFTER", timedelta(0)):
        yield


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


def test_another_shard_stores_the_same_without_asking_the_node(
    lake: dict[str, str], chain: Chain, from_node: Tables, make_service: MakeService
) -> None:
    first = make_service(network(chain.node.url), name="first", **lake)
    collect(first, chain)
    give(first)
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
