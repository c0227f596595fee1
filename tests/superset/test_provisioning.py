"""Provisioning: row rules of all datasets, minimal permissions of guests, and repetition without changes."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import CHECKOUT
from tests.api.world import World
from tests.superset.service import Superset, SupersetFailed, launcher, rows_of

pytestmark = pytest.mark.release

ASSETS = CHECKOUT / "bi" / "superset" / "assets"
CLAUSE = "tenant_id = '{{ current_username() }}'"

# When something was looked at last is no change of it; the others are records of requests.
_TIMES = {"created_on", "changed_on", "last_saved_at", "last_login"}
_RECORDS = {"alembic_version", "cache_keys", "key_value", "logs"}


def ask(superset: Superset, sql: str) -> list[Any]:
    """Read Superset's metadata."""
    with closing(sqlite3.connect(f"file:{superset.folder / 'superset.db'}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def contents(superset: Superset) -> dict[str, list[str]]:
    """Return all rows of all tables, without times."""
    found = {}
    for (table,) in ask(superset, "select name from sqlite_master where type = 'table'"):
        if table not in _RECORDS:
            names = [row[1] for row in ask(superset, f"pragma table_info('{table}')") if row[1] not in _TIMES]
            listed = ", ".join(f'"{name}"' for name in names)
            found[table] = sorted(map(repr, ask(superset, f'select {listed} from "{table}"')))
    return found


def assets(kind: str) -> list[dict[str, Any]]:
    return [yaml.safe_load(file.read_text()) for file in sorted((ASSETS / kind).glob("*.yaml"))]


def test_every_dataset_has_the_rule_of_the_tenant(superset: Superset) -> None:
    datasets = ask(superset, "select id, table_name from tables")
    assert {name for _, name in datasets} == {each["table_name"] for each in assets("datasets")}
    ruled = ask(
        superset,
        "select t.table_id, f.clause, f.filter_type, r.name from rls_filter_tables t "
        "join row_level_security_filters f on t.rls_filter_id = f.id "
        "join rls_filter_roles fr on fr.rls_filter_id = f.id join ab_role r on r.id = fr.role_id",
    )
    assert sorted(ruled) == sorted((key, CLAUSE, "Regular", "Ledgermart guest") for key, _ in datasets)


def test_every_dataset_has_columns_for_tenant_and_subject(superset: Superset) -> None:
    """The rules use these two columns; queries of a dataset without them would fail, without leaking rows."""
    for each in assets("datasets"):
        assert {"tenant_id", "subject_key"} <= {column["column_name"] for column in each["columns"]}


def test_guests_may_only_view_a_dashboard(superset: Superset) -> None:
    permissions = ask(
        superset,
        "select p.name, v.name, r.name from ab_permission_view_role pr join ab_role r on pr.role_id = r.id "
        "join ab_permission_view pv on pr.permission_view_id = pv.id join ab_permission p on pv.permission_id = p.id "
        "join ab_view_menu v on pv.view_menu_id = v.id where r.name in ('Ledgermart guest', 'Public')",
    )
    assert {role for _, _, role in permissions} == {"Ledgermart guest"}
    assert {name for name, _, _ in permissions} == {
        "can_read",
        "can_write",
        "can_dashboard",
        "can_log",
        "can_time_range",
    }
    assert [view for name, view, _ in permissions if name == "can_write"] == ["DashboardFilterStateRestApi"]
    assert not {"Database", "Dataset", "SQLLab", "SavedQuery", "Query"} & {view for _, view, _ in permissions}


def test_there_are_no_users_to_sign_in(superset: Superset) -> None:
    assert ask(superset, "select username from ab_user") == []


def test_the_file_is_opened_to_read_and_locked(superset: Superset, world: World) -> None:
    [(uri, extra, in_lab, dml)] = ask(superset, "select sqlalchemy_uri, extra, expose_in_sqllab, allow_dml from dbs")
    assert uri == f"duckdb:///{world.settings.serving_dir}/current.duckdb"
    arguments = yaml.safe_load(extra)["engine_params"]["connect_args"]
    assert arguments["read_only"] is True
    assert arguments["config"]["enable_external_access"] is False
    assert arguments["config"]["lock_configuration"] is True
    assert (in_lab, dml) == (0, 0)


def test_the_lock_holds_where_queries_run(superset: Superset, world: World) -> None:
    guest = superset.guest(superset.claims(world.tenant_id))
    chart = guest.charts(superset.provisioned("cap-table")["embeddedId"])["Total supply"]
    settings = ["enable_external_access", "lock_configuration", "access_mode"]
    asked = [
        {"expressionType": "SQL", "sqlExpression": f"current_setting('{name}')", "label": name} for name in settings
    ]
    [row] = rows_of(guest.query(chart, asked))
    assert [str(row[name]).lower() for name in settings] == ["false", "true", "read_only"]


def test_provisioning_again_changes_nothing(superset: Superset, world: World) -> None:
    before, told = contents(superset), (superset.folder / "provisioned.json").read_text()
    assert sum(map(len, before.values())) > 100
    launcher().provision(superset.world.settings, superset.folder)
    after = contents(superset)
    assert {table for table in before if before[table] != after[table]} == set()
    assert (superset.folder / "provisioned.json").read_text() == told


def test_concurrent_provisioning_is_refused(superset: Superset, monkeypatch: pytest.MonkeyPatch) -> None:
    run = launcher()
    with run.provisioning_lock(superset.folder):
        with pytest.raises(run.NotReadyError, match="another process"), run.provisioning_lock(superset.folder):
            raise SupersetFailed("both have the lock")


def test_secrets_are_nowhere_in_the_metadata(superset: Superset) -> None:
    content = (superset.folder / "superset.db").read_bytes() + (superset.folder / "provisioned.json").read_bytes()
    assert superset.key.encode() not in content
    assert superset.key not in superset.log()


def test_without_marts_the_launcher_says_what_to_run(superset: Superset, tmp_path: Path) -> None:
    run = launcher()
    settings = type("Settings", (), {"serving_dir": tmp_path})()
    with pytest.raises(run.NotReadyError, match="ledgermart init"):
        run.provision(settings, tmp_path)
