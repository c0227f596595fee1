"""Fixtures: two tenants with much to show, the API, and Superset provisioned for them; one of each for the folder."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.api.world import World
from tests.browser.servers import Api, Portal, allow, serving_api
from tests.browser.visitor import launch
from tests.chain.process import free_port
from tests.superset.service import Guest, Superset
from tests.superset.world import make_two_markets


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = make_two_markets(tmp_path_factory.mktemp("markets"))
    settings = replace(made.settings, reports_provider="superset", superset_url=f"http://127.0.0.1:{free_port()}")
    yield replace(made, settings=settings)
    made.store.close()


@pytest.fixture(scope="package")
def api(world: World) -> Iterator[Api]:
    with serving_api(world) as api:
        yield api


@pytest.fixture(scope="package")
def portal(api: Api) -> Iterator[Portal]:
    """The customer's site, which may frame its reports."""
    with Portal(api) as portal:
        allow(api, portal.origin)
        yield portal


@pytest.fixture(scope="package")
def superset(world: World, api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Superset]:
    with Superset(world, api.url, tmp_path_factory.mktemp("log") / "superset.log") as superset:
        yield superset


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright, launch(playwright) as browser:
        yield browser


@pytest.fixture
def guest(superset: Superset, world: World) -> Guest:
    """The first tenant, at its token's cap table."""
    return superset.guest(superset.claims(world.tenant_id))


@pytest.fixture
def chart(superset: Superset, guest: Guest) -> Callable[[str], dict[str, Any]]:
    """Find a chart of the cap table by its name."""
    charts = guest.charts(superset.provisioned("cap-table")["embeddedId"])
    return charts.__getitem__
