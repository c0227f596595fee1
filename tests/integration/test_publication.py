"""The publication asset: removal of old versions, and versions pinned by cursors."""

import shutil
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from cli.status import read_status
from control import serving, tenants, version_pins
from control.clock import utc_now
from control.settings import load_settings
from control.store import open_store
from pipelines.defs.publish import publication
from pipelines.defs.resources import Warehouse
from pipelines.defs.sharing import served_version
from tests.unit.control.postgres import new_database, unique_name
from warehouse.objects import Objects
from warehouse.port import Warehouse as WarehousePort
from warehouse.versions import published_versions


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_versions_pinned_by_cursors_stay_and_their_disk_need_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("LEDGERMART_VERSION_DISK_BUDGET_MB", "1")
    settings = load_settings()

    def publish() -> list[int]:
        assert dg.materialize([publication], resources={"warehouse": Warehouse()}).success
        return sorted(published_versions(settings.serving_dir))

    with closing(open_store(settings)) as store:
        store.migrate()
        with duckdb.connect(str(settings.marts_path)) as connection:
            connection.execute(
                "create schema marts; create table marts.n as select md5(i::text) as n from range(50000) as t(i)"
            )
        assert publish() == [1]
        with store.write() as session:
            version_pins.pin(session, 1, tenants.create(session, "acme").id)
        assert publish() == [1, 2]
        assert read_status(settings)["versionMegabytesMissing"] == 0
        assert publish() == [1, 2, 3]
        # Over the budget, unpinned versions are removed early.
        capfd.readouterr()
        assert publish() == [1, 3, 4]
        told = capfd.readouterr().err
        size = sum(path.stat().st_size for path in published_versions(settings.serving_dir).values())
        missing = -(-size // 1_000_000) - 1
        assert missing > 0
        assert f"need {missing} MB more than LEDGERMART_VERSION_DISK_BUDGET_MB" in told
        assert read_status(settings)["versionMegabytesMissing"] == missing
        with store.write() as session:
            version_pins.pinned_while_removing(session, utc_now() + timedelta(minutes=62))
        assert publish() == [4, 5]
        assert read_status(settings)["versionMegabytesMissing"] == 0


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_shared_version_is_in_force_for_other_machines_or_the_step_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_server: str
) -> None:
    place = tmp_path / "store"
    with new_database(postgres_server, unique_name()) as url:
        for name, value in {
            "LEDGERMART_DATA_DIR": str(tmp_path / "data"),
            "LEDGERMART_CONTROL_URL": url,
            "LEDGERMART_VERSIONS": str(place),
            "LEDGERMART_VERSION_GRACE_SECONDS": "0",
            "LEDGERMART_SHARD": "3",
        }.items():
            monkeypatch.setenv(name, value)
        settings = load_settings()
        settings.data_dir.mkdir()
        port = WarehousePort(settings)

        def build() -> None:
            port.mark_marts("token", served_version(settings))

        def run() -> str | None:
            result = dg.materialize([publication], resources={"warehouse": Warehouse()}, raise_on_error=False)
            failures = [event.step_failure_data for event in result.all_events if event.is_step_failure]
            return None if result.success else str(failures[0].error)

        def published() -> int | None:
            found = port.published()
            return None if found is None else found.version

        def kept() -> list[int]:
            with store.read() as session:
                return [served.version for served in serving.read_kept(session, 3)]

        with closing(open_store(settings)) as store:
            store.migrate()
            for expected in ([1], [1, 2], [2, 3]):
                build()
                assert run() is None
                assert kept() == expected
            assert len(Objects(str(place)).list("shard-3")) == 2
            with store.write() as session:
                tenant = tenants.create(session, "acme")
                tenant.shard = 3
                version_pins.pin(session, 2, tenant.id)
            build()
            assert run() is None
            build()
            assert run() is None
            assert kept() == [2, 4, 5]

            # Another builder of the shard publishes after this one has begun to build.
            build()
            with store.write() as session:
                newest = serving.read_served(session, 3)
                assert newest is not None
                serving.publish(session, 3, 5, newest._replace(version=6))
            assert "another builder published" in str(run())
            assert kept() == [2, 4, 5, 6]
            assert published() == 5

            # The store does not answer; the next cycle publishes again.
            shutil.move(place, tmp_path / "away")
            place.write_text("no folder")
            build()
            assert "version 7 is not served" in str(run())
            assert published() == 5
            place.unlink()
            shutil.move(tmp_path / "away", place)
            build()
            assert run() is None
            assert kept()[-1] == 7
            assert read_status(settings)["shards"][0] | {"publishedAt": ""} == {
                "shard": 3,
                "version": 7,
                "publishedAt": "",
                "versionsKept": 3,
            }
