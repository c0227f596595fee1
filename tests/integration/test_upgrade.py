"""Data folders of earlier releases: this release opens them, rebuilds the marts, and returns the same answers."""

import json
import tarfile
import uuid
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.app import create_app
from tests.chain.process import free_port
from tests.integration.harness import LocalNetwork, Service
from tests.integration.postgres_copy import copy_to_postgres
from tests.integration.release_folder import RELEASES, answers
from tests.unit.control.postgres import new_database
from warehouse.versions import current_publication


def _releases() -> list[Any]:
    """Return the archives of all releases; those between the first and the newest are slow tests."""
    archives = sorted(RELEASES.glob("*.tar.xz"), key=lambda path: [int(part) for part in _version(path).split(".")])
    ends = (archives[0], archives[-1])
    rare = pytest.mark.release
    return [pytest.param(path, id=_version(path), marks=[] if path in ends else rare) for path in archives]


def _version(archive: Path) -> str:
    return archive.name.removesuffix(".tar.xz")


@pytest.mark.ci
@pytest.mark.proof("data folders of earlier releases are upgraded and answer the same")
@pytest.mark.parametrize("release", _releases())
def test_a_release_s_data_folder_is_upgraded_and_returns_the_same(release: Path, tmp_path: Path) -> None:
    with tarfile.open(release) as archive:
        archive.extractall(tmp_path, filter="data")
    check_upgrade(tmp_path, {})


@pytest.mark.ci
def test_a_control_store_on_postgres_is_upgraded_and_returns_the_same(postgres_server: str, tmp_path: Path) -> None:
    with tarfile.open(RELEASES / "0.1.0.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    with new_database(postgres_server, f"t{uuid.uuid4().hex}") as url:
        control = tmp_path / "data" / "control.db"
        copy_to_postgres(control, url, "0.1.0")
        control.unlink()
        check_upgrade(tmp_path, {"LEDGERMART_CONTROL_URL": url})
        assert not control.exists()


def check_upgrade(folder: Path, variables: dict[str, str]) -> None:
    """Upgrade a release's data folder by one cycle; compare the API's answers with those of the release."""
    expected = json.loads((folder / "answers.json").read_text())
    # There is no node: the stored data must be enough.
    service = Service(folder, [LocalNetwork("local", f"http://127.0.0.1:{free_port()}")], variables)
    before = current_publication(service.settings.serving_dir)
    # Before the upgrade, requests for data missing in the old version are refused, but none fails.
    with TestClient(create_app(service.settings)) as client:
        client.headers["Authorization"] = f"Bearer {expected['key']}"
        assert {client.get(path).status_code for path in expected["answers"]} <= {200, 409, 503}
    done = service.ledgermart("cycle")
    assert done.returncode == 3, done.stdout + done.stderr
    service.close()
    after = current_publication(service.settings.serving_dir)
    assert before is not None
    assert after is not None
    assert after.version > before.version
    said = answers(service.settings.data_dir, expected["key"], variables)
    assert len(said) > 20
    assert _as_far_as(said, expected["answers"]) == expected["answers"]


def _as_far_as(said: Any, expected: Any) -> Any:
    """Keep the parts of an answer that the release also had; accept `Unconfirmed` for any status."""
    if said == "Unconfirmed":
        return expected
    if isinstance(said, dict) and isinstance(expected, dict):
        return {name: _as_far_as(value, expected[name]) for name, value in said.items() if name in expected}
    if isinstance(said, list) and isinstance(expected, list) and len(said) == len(expected):
        return [_as_far_as(one, other) for one, other in zip(said, expected, strict=True)]
    return said
