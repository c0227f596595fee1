"""The daily job and a partial build, each in a separate process as the daemon starts them."""

import json
from datetime import timedelta

import pytest
from sqlalchemy import select

from control import idempotency
from control.clock import utc_now
from control.models import IdempotencyRecord
from tests.integration.harness import Service
from tests.integration.warm_processes import run_forked


def _run_maintenance() -> None:
    import dagster as dg

    from cli import environment
    from control.networks.in_force import networks_in_force
    from pipelines.definitions import build_definitions

    settings = environment.prepare()
    job = build_definitions(networks_in_force(settings)).resolve_job_def("maintenance")
    assert job.execute_in_process(instance=dg.DagsterInstance.get()).success


@pytest.mark.ci
def test_the_audit_reads_the_pipelines_own_files(ready_service: Service) -> None:
    tenant_id = ready_service.tenant().tenant_id
    now = utc_now()
    kept = {"method": "POST", "path": "/v1/tokens", "body_hash": "0" * 64, "status": 201, "response_body": b"{}"}
    with ready_service.store.write() as session:
        for key, age in (("old", 25), ("new", 23)):
            idempotency.store(session, tenant_id, key, **kept, now=now - timedelta(hours=age))
    done = run_forked(_run_maintenance, (), ready_service.environment())
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "unique_combination" in done.stdout + done.stderr
    with ready_service.store.read() as session:
        assert session.scalars(select(IdempotencyRecord.key)).all() == ["new"]


def _build_part() -> None:
    import dagster as dg

    from cli import environment
    from control.networks.in_force import networks_in_force
    from pipelines.definitions import build_definitions
    from pipelines.defs.cycle import JOB
    from pipelines.defs.keys import SNAPSHOT

    settings = environment.prepare()
    job = build_definitions(networks_in_force(settings)).resolve_job_def(JOB)
    chosen = dg.AssetKey(["marts", "networks"])
    done = job.execute_in_process(instance=dg.DagsterInstance.get(), asset_selection=[SNAPSHOT, chosen])
    assert done.success
    assert {event.asset_key for event in done.get_asset_materialization_events()} == {SNAPSHOT, chosen}


@pytest.mark.release
def test_a_partial_build_does_not_count_as_a_transformation(ready_service: Service) -> None:
    """A partial build, as from Dagster's pages, does not mark the collected rows as transformed."""
    # Each build's mark in the build file follows the project's fingerprint.
    project = "split_part(project_fingerprint, ' ', 1)"
    content = f"select * replace ({project} as project_fingerprint) from raw.transforms"
    built = ready_service.query(content)
    ready_service.tenant("newcomer")
    done = run_forked(_build_part, (), ready_service.environment())
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert ready_service.query(content) == built
    answer = json.loads(ready_service.ledgermart("cycle", "--json").stdout)
    assert answer["published"]["isNew"]
    assert ready_service.query(content) != built
