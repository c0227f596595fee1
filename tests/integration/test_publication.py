"""The publication asset: removal of old versions, and versions pinned by cursors."""

from contextlib import closing
from datetime import timedelta
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from cli.status import read_status
from control import tenants, version_pins
from control.clock import utc_now
from control.settings import load_settings
from control.store import open_store
from pipelines.defs.publish import publication
from pipelines.defs.resources import Warehouse
from warehouse.versions import published_versions


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
