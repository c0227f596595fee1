"""Fixtures of the control store's tests: each runs on an SQLite file and on a real Postgres."""

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


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """Settings of an empty, not migrated store."""
    data_dir = tmp_path / "data"
    if request.param == "sqlite":
        yield load_settings({"LEDGERMART_DATA_DIR": str(data_dir)})
        return
    with new_database(request.getfixturevalue("postgres_server"), f"t{uuid.uuid4().hex}") as url:
        yield load_settings({"LEDGERMART_DATA_DIR": str(data_dir), "LEDGERMART_CONTROL_URL": url})


@pytest.fixture
def empty_store(settings: Settings) -> Iterator[ControlStore]:
    store = open_store(settings)
    yield store
    store.close()


@pytest.fixture
def store(empty_store: ControlStore) -> ControlStore:
    empty_store.migrate()
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
