"""Fixtures: a world of example data and a client of the application on it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.valued import publish_valued
from tests.api.world import World, copy_world, make_world


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The world, created once per session; tests get copies because creating it takes almost a second."""
    made = make_world(tmp_path_factory.mktemp("world"))
    made.store.close()
    return made


@pytest.fixture(scope="session")
def valued_template(template: World, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The world with prices, created once per session."""
    made = copy_world(template, tmp_path_factory.mktemp("valued"))
    publish_valued(made)
    made.store.close()
    return made


@pytest.fixture
def valued(valued_template: World, tmp_path: Path) -> Iterator[World]:
    """A world with a linked token and valued positions, `tests.api.valued`."""
    copied = copy_world(valued_template, tmp_path)
    yield copied
    copied.store.close()


@pytest.fixture
def world(template: World, tmp_path: Path) -> Iterator[World]:
    copied = copy_world(template, tmp_path)
    yield copied
    copied.store.close()


@pytest.fixture
def client(world: World) -> Iterator[TestClient[Any]]:
    with world.client() as client:
        yield client


@pytest.fixture(scope="module")
def unchanged(template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world shared by the read-only tests of a file."""
    copied = copy_world(template, tmp_path_factory.mktemp("unchanged"))
    yield copied
    copied.store.close()


@pytest.fixture(scope="module")
def reader(unchanged: World) -> Iterator[TestClient[Any]]:
    """A client of one application on that world."""
    with unchanged.client() as client:
        yield client
