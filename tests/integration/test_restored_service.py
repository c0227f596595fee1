"""A service restored into another folder by its commands: the same answers, and a new epoch."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.app import create_app
from tests.chain.process import free_port
from tests.integration.harness import LocalNetwork, Service
from tests.integration.release_folder import answers
from warehouse.lock import writer_lock


@pytest.mark.ci
@pytest.mark.proof("a restored service answers the same")
def test_a_restored_service_answers_the_same_in_a_new_epoch(release_data: Path, tmp_path: Path) -> None:
    network = LocalNetwork("local", f"http://127.0.0.1:{free_port()}")
    shutil.copytree(release_data, tmp_path / "old" / "data")
    shutil.copy(release_data.parent / "answers.json", tmp_path)
    key = json.loads((tmp_path / "answers.json").read_text())["key"]
    old = Service(tmp_path / "old", [network])
    run(old, "cycle", code=3)
    expected = answers(old.settings.data_dir, key)
    subject = max(
        (path for path in expected if path.endswith("/activities")), key=lambda path: len(str(expected[path]))
    )
    etag, cursor = first_page(old, key, subject)
    folder = str(tmp_path / "backup")
    made = json.loads(run(old, "backup", folder, "--json"))
    assert made["epoch"] == epoch(old)

    new = Service(tmp_path / "new", [network])
    new.close()
    for name in new.settings.data_dir.glob("control.db*"):
        name.unlink()
    with writer_lock(new.settings.data_dir / "up.lock", "ledgermart up", 0):
        assert f"is in use by process {os.getpid()} (ledgermart up, since" in run(new, "restore", folder, code=4)
    assert "restored" in run(new, "restore", folder)
    refused = run(new, "restore", folder, code=2)
    assert "--set-aside renames it, and deletes nothing" in refused
    interrupted = {"folder": folder, "version": "0.3.0", "createdAt": made["createdAt"], "former": [], "places": []}
    (new.settings.data_dir / "restore.json").write_text(json.dumps({**interrupted, "dump": None}))
    assert f"run `ledgermart restore {folder}` to complete it" in run(new, "cycle", code=2)
    assert f"run `ledgermart restore {folder}` to complete it" in new.ledgermart("doctor", "--json").stdout
    assert json.loads(run(new, "restore", folder, "--json"))["wasInterrupted"]
    run(new, "cycle", code=3)
    assert answers(new.settings.data_dir, key) == expected
    assert epoch(new) != epoch(old)
    with TestClient(create_app(new.settings)) as client:
        client.headers["Authorization"] = f"Bearer {key}"
        again = client.get(subject, params={"limit": 1}, headers={"If-None-Match": etag})
        assert (again.status_code, again.headers["ETag"] != etag) == (200, True)
        gone = client.get(subject, params={"limit": 1, "cursor": cursor})
        assert (gone.status_code, gone.json()["code"]) == (410, "cursor-expired")
    old.close()


def run(service: Service, *arguments: str, code: int = 0) -> str:
    done = service.ledgermart(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def epoch(service: Service) -> Any:
    return json.loads((service.settings.serving_dir / "current.json").read_text())["epoch"]


def first_page(service: Service, key: str, path: str) -> tuple[str, str]:
    """Return ETag and next cursor of a page of one row, after checking that both are accepted."""
    with TestClient(create_app(service.settings)) as client:
        client.headers["Authorization"] = f"Bearer {key}"
        page = client.get(path, params={"limit": 1})
        etag, cursor = page.headers["ETag"], page.json()["page"]["nextCursor"]
        assert client.get(path, params={"limit": 1}, headers={"If-None-Match": etag}).status_code == 304
        assert client.get(path, params={"limit": 1, "cursor": cursor}).status_code == 200
    return str(etag), str(cursor)
