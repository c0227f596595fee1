"""Fixtures: the browser, a market, its API, and a customer's site that embeds the reports.

The tests of this folder share them; a test that changes the market or the tenant's settings uses its own servers.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.api.world import World, copy_world
from tests.browser.published import make_market
from tests.browser.servers import Api, Portal, allow, serving_api
from tests.browser.visitor import Visitor, launch, visiting

Visit = Callable[..., AbstractContextManager[Visitor]]


@dataclass(frozen=True)
class Servers:
    """The API of a market, and a site on another origin that may frame its reports."""

    api: Api
    portal: Portal

    @property
    def world(self) -> World:
        """Example data and keys."""
        return self.api.world


# Scope package, not session: while Playwright runs, no other test can run an event loop in this thread.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        with launch(playwright) as browser:
            yield browser


@pytest.fixture(scope="package")
def template(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The market, created once."""
    made = make_market(tmp_path_factory.mktemp("market"))
    made.store.close()
    return made


@pytest.fixture(scope="package")
def servers(template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Servers for read-only tests."""
    with _serving(template, tmp_path_factory.mktemp("servers")) as servers:
        yield servers


@pytest.fixture
def own_servers(template: World, tmp_path: Path) -> Iterator[Servers]:
    """Servers for a single test, which may change everything."""
    with _serving(template, tmp_path) as servers:
        yield servers


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Create visitors, and check at the end that they met no problems."""
    visitors: list[Visitor] = []

    @contextmanager
    def begin(**options: Any) -> Iterator[Visitor]:
        with visiting(browser, **options) as visitor:
            visitors.append(visitor)
            yield visitor

    yield begin
    assert [problem for visitor in visitors for problem in visitor.problems] == []


@contextmanager
def _serving(template: World, folder: Path) -> Iterator[Servers]:
    with ExitStack() as opened:
        world = copy_world(template, folder)
        opened.callback(world.store.close)
        api = opened.enter_context(serving_api(world))
        portal = opened.enter_context(Portal(api))
        allow(api, portal.origin)
        yield Servers(api, portal)
