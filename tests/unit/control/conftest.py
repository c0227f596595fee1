"""Fixtures of the control store's tests: each runs on an SQLite file and on a real Postgres."""

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from control import access, tenants
from control.access import Principal
from control.networks.definitions import Network, load_networks
from control.settings import Settings, load_settings
from control.store import ControlStore, open_store
from tests.unit.control.postgres import new_database, running_postgres


@dataclass(frozen=True)
class World:
    """A migrated store with two tenants, each with an admin."""

    store: ControlStore
    settings: Settings
    networks: dict[str, Network]
    acme: Principal
    other: Principal


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SQLite file of a migrated store, to be copied: migrating takes longer than most tests."""
    folder = tmp_path_factory.mktemp("migrated")
    _migrate(load_settings({"LEDGERMART_DATA_DIR": str(folder)}))
    return folder / "control.db"


@pytest.fixture(scope="session")
def migrated_database(postgres_server: str) -> Iterator[str]:
    """The name of a Postgres database with a migrated store, to be copied."""
    with new_database(postgres_server, "migrated") as url:
        _migrate(load_settings({"LEDGERMART_CONTROL_URL": url}))
        yield "migrated"


def _migrate(settings: Settings) -> None:
    store = open_store(settings)
    store.migrate()
    store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """Settings of a store: migrated where the test wants a `store`, else empty."""
    data_dir = tmp_path / "data"
    is_migrated = "store" in request.fixturenames
    if request.param == "sqlite":
        found = load_settings({"LEDGERMART_DATA_DIR": str(data_dir)})
        if is_migrated:
            data_dir.mkdir()
            shutil.copy(request.getfixturevalue("migrated_file"), data_dir / "control.db")
        yield found
        return
    server = request.getfixturevalue("postgres_server")
    template = request.getfixturevalue("migrated_database") if is_migrated else None
    with new_database(server, f"t{uuid.uuid4().hex}", template) as url:
        yield load_settings({"LEDGERMART_DATA_DIR": str(data_dir), "LEDGERMART_CONTROL_URL": url})


@pytest.fixture
def empty_store(settings: Settings) -> Iterator[ControlStore]:
    store = open_store(settings)
    yield store
    store.close()


@pytest.fixture
def store(empty_store: ControlStore) -> ControlStore:
    assert empty_store.is_current()
    return empty_store


@pytest.fixture
def networks(settings: Settings) -> dict[str, Network]:
    return load_networks(settings.networks_file, {})


@pytest.fixture
def world(store: ControlStore, settings: Settings, networks: dict[str, Network]) -> World:
    return World(store, settings, networks, new_admin(store, "acme"), new_admin(store, "other"))


def new_admin(store: ControlStore, tenant_name: str) -> Principal:
    with store.write() as session:
        tenant = tenants.create(session, tenant_name)
        _, bearer = access.create_key(session, tenant.id, "admin")
        return access.authenticate(session, bearer)
