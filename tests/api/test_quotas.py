"""Quotas over HTTP: creations beyond the limit are refused, and a tenant sees its usage."""

from typing import Any

import pytest
from click.testing import CliRunner

from cli.main import main
from control import quotas
from control.quotas import QuotaName
from tests.api.document import KEYED, ask, stored
from tests.api.test_errors import problem
from tests.api.world import World

CREATING = [
    param
    for param in KEYED
    if param.values[1] != "delete"
    and {"201", "202"} & param.values[2]["responses"].keys()
    and param.id not in ("check_token_metadata", "revoke_reports")
]


def used(world: World) -> dict[QuotaName, int]:
    with world.store.read() as session:
        return {quota.name: quota.used for quota in quotas.read(session, world.tenant_id)}


@pytest.mark.parametrize(("path", "method", "operation"), CREATING)
def test_each_creation_is_refused_at_the_limit(world: World, path: str, method: str, operation: dict[str, Any]) -> None:
    usage = used(world)
    with world.store.write() as session:
        quotas.set_limits(session, world.tenant_id, {name: count for name, count in usage.items() if name != "scripts"})
    before = stored(world)
    with world.client() as client:
        found = problem(ask(client, path, method, operation, {}), 409, "quota-exceeded")
    assert "ledgermart tenant quotas --" in found["detail"]
    assert stored(world) == before


def test_a_tenant_sees_its_usage_and_the_administrator_sets_limits(world: World) -> None:
    arguments = ["tenant", "quotas", "acme", "--objects", "77", "--stored-prices", "default"]
    settings = world.settings
    environment = {
        "LEDGERMART_DATA_DIR": str(settings.data_dir),
        "LEDGERMART_NETWORKS": str(settings.networks_file),
    }
    answer = CliRunner().invoke(main, arguments, env=environment)
    assert answer.exit_code == 0, answer.output
    assert "ledgermart tenant quotas --objects" in answer.output
    with world.client("viewer") as client:
        data = client.get("/v1/quotas").json()["data"]
    assert [(one["quota"], one["limit"]) for one in data] == [
        ("storedPrices", 1_000_000),
        ("objects", 77),
        ("scripts", 100_000),
    ]
    assert {one["quota"]: one["used"] for one in data} == used(world)
    assert CliRunner().invoke(main, [*arguments[:3], "--objects", "-1"], env=environment).exit_code == 2
