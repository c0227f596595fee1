"""Nodes, worlds and services of the integration tests: each test has its own data folder."""

import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

from pipelines.chain import finality
from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.datasets.object_store import ObjectStore
from tests.integration.harness import LocalNetwork, LocalUtxoNetwork, Service
from tests.integration.past import Chain, chain_with_past
from tests.integration.release_folder import RELEASES
from tests.shared import once, run_folder

MakeService = Callable[..., Service]
_BUCKET = "facts"
READY_NETWORKS = (LocalNetwork("local", None), LocalNetwork("second", None))


@pytest.fixture
def node() -> Iterator[AnvilNode]:
    """A separate node for this test."""
    with AnvilNode(genesis_time=GENESIS_TIME) as running:
        yield running


@pytest.fixture
def make_service(tmp_path: Path) -> Iterator[MakeService]:
    """Make a service over networks; a second one in the same test needs another name."""
    with ExitStack() as stack:

        def make(*networks: LocalNetwork | LocalUtxoNetwork, name: str = "service", **settings: str) -> Service:
            service = Service(tmp_path / name, networks, settings)
            stack.callback(service.close)
            return service

        yield make


@pytest.fixture(scope="module")
def release_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release's data folder, with rows and two versions; only to be copied."""
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(RELEASES / "0.3.0.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    data = folder / "data"
    data.chmod(0o700)
    (data / "serving").chmod(0o700)
    (data / "warehouse.lock").touch(mode=0o600)
    return data


@pytest.fixture(scope="session")
def ready_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Give a folder that `ledgermart init` prepared for the tenant `first`, and its output; only to be copied."""
    run = run_folder(tmp_path_factory)
    with once(run, "ready", partial(_prepare, run / "ready")) as printed:
        yield run / "ready", printed


def _prepare(folder: Path) -> str:
    service = Service(folder, READY_NETWORKS)
    done = service.ledgermart("init", "--tenant", "first", "--json")
    service.close()
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def ready_service(ready_folder: tuple[Path, str], tmp_path: Path) -> Iterator[Service]:
    """A service on which `ledgermart init` was run; its networks `local` and `second` have no node yet."""
    shutil.copytree(ready_folder[0], tmp_path / "ready")
    service = Service(tmp_path / "ready", READY_NETWORKS)
    yield service
    service.close()


@pytest.fixture(scope="module")
def objects() -> Iterator[ObjectStore]:
    with ObjectStore() as store:
        store.make_bucket(_BUCKET)
        yield store


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.release)])
def lake(
    request: pytest.FixtureRequest, empty_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """Settings of a lake of its own."""
    data = str(tmp_path / "lake")
    if request.param == "s3":
        for name, value in request.getfixturevalue("objects").variables.items():
            monkeypatch.setenv(name, value)
        data = f"s3://{_BUCKET}/{empty_database.rpartition('/')[2]}"
    return {"LEDGERMART_LAKE": f"ducklake:postgres:{empty_database}", "LEDGERMART_LAKE_DATA": data}


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with chain_with_past() as made:
        yield made


@pytest.fixture
def settled_at_once() -> Iterator[None]:
    """Settle final blocks in the next cycle, not after an hour."""
    with mock.patch.object(finality, "SETTLED_AFTER", timedelta(0)):
        yield
