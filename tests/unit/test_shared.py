"""One shared resource for all workers of a run."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tests.shared import once, run_folder, worker


def test_concurrent_workers_share_one_resource_stopped_by_the_last(tmp_path: Path) -> None:
    made: list[str] = []
    stopped: list[str] = []
    entered = Barrier(4)

    def make() -> str:
        made.append("server")
        return f"server {len(made)}"

    def use(number: int) -> str:
        with once(tmp_path, "server", make, stopped.append) as value:
            entered.wait()
            assert stopped == []
            if number > 0:
                return value
            # The other workers leave first and stop nothing.
            for future in others:
                future.result()
            assert stopped == []
            return value

    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(use, number) for number in (1, 2, 3)]
        assert use(0) == "server 1"
    assert [future.result() for future in others] == ["server 1"] * 3
    assert stopped == ["server 1"]


def test_worker_after_the_last_one_gets_a_new_resource(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return made[-1]

    for expected in (0, 1):
        with once(tmp_path, "server", make, lambda _: None) as value:
            assert value == expected


def test_resource_without_stop_stays(tmp_path: Path) -> None:
    for made in ("first", "second"):
        with once(tmp_path, "world", lambda made=made: made) as value:
            assert value == "first"


def test_failed_start_is_retried_by_the_next_worker(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), once(tmp_path, "server", lambda: 1 // 0):
        pass
    with once(tmp_path, "server", lambda: "up") as value:
        assert value == "up"


def test_a_killed_worker_no_longer_counts(tmp_path: Path) -> None:
    stopped: list[str] = []
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with once(tmp_path, "server", lambda: "up", stopped.append):
            os.write(writer, b"!")
            os.read(os.pipe()[0], 1)
        os._exit(1)
    assert os.read(reader, 1) == b"!"
    with once(tmp_path, "server", lambda: "another", stopped.append) as value:
        assert value == "up"
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert stopped == ["up"]


def test_every_worker_of_a_run_has_the_same_folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    base = tmp_path_factory.getbasetemp()
    assert (worker(), run_folder(tmp_path_factory)) == ("main", base)
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    assert (worker(), run_folder(tmp_path_factory)) == ("gw1", base.parent)
