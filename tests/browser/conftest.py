"""Fixtures: the browser, a market, the API on it, and the customer's site that embeds its reports.

One of each for all tests of this folder; what changes the market or the tenant's settings takes servers of its own.
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
    """The API on a market, and a site on another origin that may frame its reports."""

    api: Api
    portal: Portal

    @property
    def world(self) -> World:
        """Data and keys."""
        return self.api.world


# The package's, not the session's: while Playwright runs, no other test could run an event loop in this thread.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        with launch(playwright) as browser:
            yield browser


@pytest.fixture(scope="package")
def template(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The market as made once."""
    made = make_market(tmp_path_factory.mktemp("market"))
    made.store.close()
    return made


@pytest.fixture(scope="package")
def servers(template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Servers for tests that only look."""
    with _serving(template, tmp_path_factory.mktemp("servers")) as servers:
        yield servers


@pytest.fixture
def own_servers(template: World, tmp_path: Path) -> Iterator[Servers]:
    """Servers for one test, which may change anything."""
    with _serving(template, tmp_path) as servers:
        yield servers


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Make visitors; at the end nothing may have happened that should not."""
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
