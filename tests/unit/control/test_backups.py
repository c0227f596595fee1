"""Copies of the control store in backups."""

from pathlib import Path

import psycopg
import pytest

from control import backups
from control.errors import StoreUnavailable
from control.settings import load_settings


def test_a_locked_table_ends_the_copy_at_the_limit(
    empty_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "_LOCK_WAIT", "1ms")
    settings = load_settings({"LEDGERMART_DATA_DIR": str(tmp_path), "LEDGERMART_CONTROL_URL": empty_database})
    with psycopg.connect(empty_database, autocommit=True) as session:
        session.execute("create table held (a int)")
        with session.transaction():
            session.execute("lock table held in access exclusive mode")
            with pytest.raises(StoreUnavailable, match="canceling statement"):
                backups.copy_store(settings, tmp_path)
