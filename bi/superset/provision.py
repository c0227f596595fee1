"""Import `assets/` into Superset's metadata; a repetition changes nothing.

`run.py` starts this in Superset's environment. The assets have the form of Superset's own export. An export lacks the
address of the published file, the guests' role, the row-level rule, and the ids by which dashboards are embedded. These
are added here. At the end `provisioned.json` is written, with the ids that Superset assigned.
"""

import argparse
import json
import logging
import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from flask_migrate import upgrade
from sqlalchemy.engine import URL

ASSETS = Path(__file__).parent / "assets"
NAMESPACE = uuid.UUID("6f0c1a4e-9d0b-5c0e-8a3e-2f1b7c5d9e10")
"""Namespace of the ids by which dashboards are embedded; fixed, because customers' links contain these ids."""

RULE = "Tenant of the guest"
CLAUSE = "tenant_id = '{{ current_username() }}'"

# Calls of an embedded dashboard. None of them returns data: that needs the dashboard of the token.
GUEST_PERMISSIONS = (
    ("can_read", "Chart"),
    ("can_read", "CssTemplate"),
    ("can_read", "CurrentUserRestApi"),
    ("can_read", "Dashboard"),
    ("can_read", "DashboardFilterStateRestApi"),
    ("can_write", "DashboardFilterStateRestApi"),
    ("can_read", "EmbeddedDashboard"),
    ("can_read", "Theme"),
    ("can_dashboard", "Superset"),
    ("can_log", "Superset"),  # the page reports its own events; without it each view logs an error
    ("can_time_range", "Api"),
)

Config = dict[str, Any]


def main() -> None:
    """Migrate the metadata, import the assets, and write the ids for the API."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("marts", type=Path, help="the published file under its stable name")
    arguments.add_argument("embedder", help="origin of the pages around a dashboard")
    arguments.add_argument("provisioned", type=Path, help="file to write the ids of the dashboards to")
    given = arguments.parse_args()

    from superset.app import create_app

    with create_app().app_context():
        # Without this, each of hundreds of migrations logs a line.
        logging.getLogger("alembic").setLevel(logging.WARNING)
        upgrade()
        _update_permissions()
        _replace(given.provisioned, _import(given.marts, given.embedder))


def read_assets(kind: str) -> list[Config]:
    """Return the assets of one kind: databases, datasets, charts or dashboards, by file name."""
    return [yaml.safe_load(file.read_text()) for file in sorted((ASSETS / kind).glob("*.yaml"))]


def embedded_id(slug: str) -> uuid.UUID:
    """Return the id by which a dashboard is embedded."""
    return uuid.uuid5(NAMESPACE, slug)


def _update_permissions() -> None:
    from superset import appbuilder, security_manager

    appbuilder.add_permissions(update_perms=True)
    security_manager.sync_role_definitions()


def _import(marts: Path, embedder: str) -> Config:
    """Import everything in one transaction; returns the report's dashboards with their datasets."""
    from superset import db
    from superset.commands.chart.importers.v1.utils import import_chart
    from superset.commands.dashboard.importers.v1.utils import find_chart_uuids, import_dashboard, update_id_refs
    from superset.commands.database.importers.v1.utils import import_database
    from superset.commands.dataset.importers.v1.utils import import_dataset
    from superset.commands.utils import update_chart_config_dataset

    allowed: dict[str, Any] = {"overwrite": True, "ignore_permissions": True}
    databases, datasets, charts = {}, {}, {}
    for config in read_assets("databases"):
        config["sqlalchemy_uri"] = URL.create("duckdb", database=str(marts)).render_as_string()
        databases[config["uuid"]] = import_database(config, **allowed)
    db.session.flush()
    for config in read_assets("datasets"):
        config["database_id"] = databases[config["database_uuid"]].id
        datasets[config["uuid"]] = import_dataset(config, **allowed)
    db.session.flush()
    places = {
        key: {
            "datasource_id": dataset.id,
            "datasource_type": dataset.datasource_type,
            "datasource_name": dataset.table_name,
        }
        for key, dataset in datasets.items()
    }
    for config in read_assets("charts"):
        update_chart_config_dataset(config, places[config["dataset_uuid"]])
        charts[config["uuid"]] = import_chart(config, **allowed), datasets[config["dataset_uuid"]]
    db.session.flush()
    _protect()
    told = {}
    for config in read_assets("dashboards"):
        shown = [charts[key] for key in sorted(find_chart_uuids(config["position"]))]
        chart_ids = {key: chart.id for key, (chart, _) in charts.items()}
        dashboard = import_dashboard(update_id_refs(config, chart_ids, places), **allowed)
        _set(dashboard, "slices", [chart for chart, _ in shown])
        db.session.flush()
        _embed(dashboard, embedder)
        told[config["slug"]] = {
            "embeddedId": str(embedded_id(config["slug"])),
            "embedder": embedder,
            "datasets": _tell(dataset for _, dataset in shown),
        }
    db.session.commit()
    return {"dashboards": told}


def _protect() -> None:
    """Give guests their role and every dataset the rule of the tenant; take everything from Public."""
    from flask import current_app
    from superset import db, security_manager
    from superset.connectors.sqla.models import RowLevelSecurityFilter, SqlaTable

    guests = security_manager.add_role(current_app.config["GUEST_ROLE_NAME"])
    permissions = [security_manager.find_permission_view_menu(*names) for names in GUEST_PERMISSIONS]
    unknown = [names for names, found in zip(GUEST_PERMISSIONS, permissions, strict=True) if found is None]
    if unknown:
        raise LookupError(f"this Superset has no such permissions: {unknown}")
    _set(guests, "permissions", permissions)
    _set(security_manager.find_role("Public"), "permissions", [])
    rule = db.session.query(RowLevelSecurityFilter).filter_by(name=RULE).one_or_none()
    if rule is None:
        rule = RowLevelSecurityFilter(name=RULE)
        db.session.add(rule)
    _set(rule, "filter_type", "Regular")
    _set(rule, "clause", CLAUSE)
    _set(rule, "roles", [guests])
    _set(rule, "tables", db.session.query(SqlaTable).all())


def _embed(dashboard: Any, embedder: str) -> None:
    """Make a dashboard embeddable under its fixed id, in pages of the API alone."""
    from superset import db
    from superset.models.embedded_dashboard import EmbeddedDashboard

    key = embedded_id(dashboard.slug)
    embedded = db.session.get(EmbeddedDashboard, key)
    if embedded is None:
        embedded = EmbeddedDashboard(uuid=key, dashboard_id=dashboard.id)
        db.session.add(embedded)
    _set(embedded, "dashboard_id", dashboard.id)
    _set(embedded, "allow_domain_list", embedder)
    for other in db.session.query(EmbeddedDashboard).filter(
        EmbeddedDashboard.dashboard_id == dashboard.id, EmbeddedDashboard.uuid != key
    ):
        db.session.delete(other)


def _set(thing: Any, name: str, value: Any) -> None:
    """Assign only what differs, so that a second run is no change."""
    present = getattr(thing, name)
    if (set(present) != set(value)) if isinstance(value, list) else (present != value):
        setattr(thing, name, value)


def _tell(datasets: Iterable[Any]) -> list[Config]:
    found = {dataset.id: dataset.main_dttm_col for dataset in datasets}
    return [{"id": key, "timeColumn": found[key]} for key in sorted(found)]


def _replace(path: Path, content: Config) -> None:
    beside = path.with_suffix(".tmp")
    with beside.open("w") as file:
        json.dump(content, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


if __name__ == "__main__":
    main()
