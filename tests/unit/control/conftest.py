"""Fixtures of the control store's tests, which run on an SQLite file and on a real Postgres."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from control import access, tenants
from control.access import Principal
from control.networks.definitions import Network, load_networks
from control.settings import Settings, load_settings
from control.store import ControlStore, open_store
from tests.unit.control.postgres import Restored, new_database, unique_name


@dataclass(frozen=True)
class World:
    """A migrated store with two tenants, each with an admin."""

    store: ControlStore
    settings: Settings
    networks: dict[str, Network]
    acme: Principal
    other: Principal


@dataclass(frozen=True)
class Template:
    """A migrated store to copy or reset, an SQLite file or a database; migrating takes longer than most tests."""

    made: Path | Restored
    principals: dict[str, Principal]


Templates = Callable[[bool], Template]
"""Returns the template with or without the world's tenants; made at first use."""


@pytest.fixture(scope="session")
def sqlite_templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    @cache
    def find(has_world: bool) -> Template:
        folder = tmp_path_factory.mktemp("template")
        principals = _migrate(load_settings({"LEDGERMART_DATA_DIR": str(folder)}), has_world)
        return Template(folder / "control.db", principals)

    return find


@pytest.fixture(scope="session")
def postgres_templates(postgres_server: str) -> Iterator[Templates]:
    with ExitStack() as stack:

        @cache
        def find(has_world: bool) -> Template:
            url = stack.enter_context(new_database(postgres_server, unique_name()))
            principals = _migrate(load_settings({"LEDGERMART_CONTROL_URL": url}), has_world)
            database = Restored(url)
            stack.callback(database.close)
            return Template(database, principals)

        yield find


def _migrate(settings: Settings, has_world: bool) -> dict[str, Principal]:
    store = open_store(settings)
    store.migrate()
    assert store.is_current()
    principals = {name: new_admin(store, name) for name in ("acme", "other")} if has_world else {}
    store.close()
    return principals


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.release)])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of database; a test that depends on it names the kinds by a mark below."""
    return str(request.param)


on_both = pytest.mark.parametrize("kind", ["sqlite", "postgres"])
"""For tests that depend on SQL: order, uniqueness, pages, transactions."""

on_postgres = pytest.mark.parametrize("kind", ["postgres"])
"""For tests of row locks. SQLite admits one writer at a time, so there they would pass without any lock."""


@pytest.fixture
def template(request: pytest.FixtureRequest, kind: str) -> Template | None:
    """The initial store of the test; None if the test does not use `store`."""
    if "store" not in request.fixturenames:
        return None
    templates: Templates = request.getfixturevalue(f"{kind}_templates")
    return templates("world" in request.fixturenames)


@pytest.fixture
def settings(
    request: pytest.FixtureRequest, kind: str, template: Template | None, tmp_path: Path
) -> Iterator[Settings]:
    """Settings of a store: migrated if the test uses `store`, otherwise empty."""
    data_dir = tmp_path / "data"
    if kind == "sqlite":
        found = load_settings({"LEDGERMART_DATA_DIR": str(data_dir)})
        if template is not None:
            assert isinstance(template.made, Path)
            data_dir.mkdir()
            shutil.copy(template.made, data_dir / "control.db")
        yield found
        return
    variables = {"LEDGERMART_DATA_DIR": str(data_dir)}
    if template is not None:
        assert isinstance(template.made, Restored)
        template.made.restore()
        yield load_settings({**variables, "LEDGERMART_CONTROL_URL": template.made.url})
        return
    server = request.getfixturevalue("postgres_server")
    with new_database(server, unique_name()) as url:
        yield load_settings({**variables, "LEDGERMART_CONTROL_URL": url})


@pytest.fixture
def empty_store(settings: Settings) -> Iterator[ControlStore]:
    # No test result depends on the store's own limit of 10 s.
    store = open_store(settings, wait_seconds=600)
    yield store
    store.close()


@pytest.fixture
def store(empty_store: ControlStore) -> ControlStore:
    return empty_store


@pytest.fixture(scope="session")
def shipped_networks() -> dict[str, Network]:
    return load_networks(load_settings({}).networks_file, {})


@pytest.fixture
def networks(shipped_networks: dict[str, Network]) -> dict[str, Network]:
    return dict(shipped_networks)


@pytest.fixture
def world(store: ControlStore, settings: Settings, networks: dict[str, Network], template: Template) -> World:
    return World(store, settings, networks, template.principals["acme"], template.principals["other"])


def new_admin(store: ControlStore, tenant_name: str) -> Principal:
    with store.write() as session:
        tenant = tenants.create(session, tenant_name)
        _, bearer = access.create_key(session, tenant.id, "admin")
        return access.authenticate(session, bearer)
