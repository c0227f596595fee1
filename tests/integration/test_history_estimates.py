"""The pace at which past ranges were collected, from the raw counts through the marts to a dry run's answer."""

from fractions import Fraction
from math import ceil

import pytest
from litestar.testing import TestClient

from api.app import create_app
from control.operations import Status
from tests.chain.fault_proxy import FaultProxy
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.integration.harness import Service
from tests.oracles.node import instant


@pytest.mark.release
def test_a_dry_run_estimates_from_observed_requests(node: AnvilNode, ready_service: Service) -> None:
    service = ready_service
    world = World(node, wallet_count=4)
    world.place_multicall()
    gold, coin = world.deploy_token("GOLD", 18), world.deploy_token("COIN", 6)
    world.distribute(gold, 1000)
    world.transfer_many(20, [gold, coin], per_block=2)
    tenant = service.tenant()
    with FaultProxy(node.url) as proxy:
        service.point_at("local", proxy.url)
        token = service.token(tenant, gold.address, tracked_from=instant(node, node.head()))
        other = service.token(tenant, coin.address)
        asked = service.ask_history(tenant, token, "creation")
        assert service.ledgermart("backfill").returncode == 0
        assert service.operation(asked).status is Status.SUCCEEDED
        received = len(proxy.calls)
    ((counted,),) = service.query("select sum(request_count)::bigint from raw.requests_spent")
    assert counted == received
    ((requests, answer_bytes, milliseconds, blocks),) = service.query(
        """
        select request_count, answer_bytes, milliseconds, unit_count
        from raw.requests_spent
        where purpose = 'History' and work = 'token'
        """
    )
    assert blocks == node.head() - service.operation(asked).from_block
    expected = [
        ceil(Fraction(10 * ceil(Fraction(spent * 10**6, blocks)), 10**6))
        for spent in (requests, answer_bytes, milliseconds)
    ]
    with TestClient(create_app(service.settings)) as client:
        client.headers["Authorization"] = f"Bearer {service.bearer(tenant)}"
        answer = client.post(
            f"/v1/tokens/{other.id}/history-requests", json={"from": "block:1", "to": "block:10", "dryRun": True}
        )
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["status"], found["blocks"]) == ("Estimated", 10)
    assert [found["requests"], found["bytes"], found["seconds"]] == [*expected[:2], ceil(Fraction(expected[2], 1000))]
