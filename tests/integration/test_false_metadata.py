"""A node that returns false metadata of a contract once: two later readings that agree correct it."""

from typing import Any

import pytest

from tests.chain.fault_proxy import FaultProxy, LieFault
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import instant

_DECIMALS = "0x313ce567"
_SUPPORTS = "0x01ffc9a7"
_ERC165, _ERC721 = f"{_SUPPORTS}01ffc9a7", f"{_SUPPORTS}80ac58cd"


def six_decimals(params: list[Any], answer: Any) -> Any:
    return f"0x{6:064x}" if params[0]["data"].startswith(_DECIMALS) else answer


def non_fungible(params: list[Any], answer: Any) -> Any:
    data = params[0]["data"]
    return f"0x{data.startswith((_ERC165, _ERC721)):064x}" if data.startswith(_SUPPORTS) else answer


def described(service: Service) -> list[tuple[Any, ...]]:
    return service.query(
        """
        select contract_status, decimals, metadata_status, found_contract_status, found_decimals
        from raw.token_metadata inner join raw.metadata_checks using (network, token_address, tenant_id)
        """
    )


@pytest.mark.ci
@pytest.mark.parametrize(
    ("tell", "false"),
    [
        pytest.param(six_decimals, ("Fungible", 6), id="decimals"),
        pytest.param(non_fungible, ("NotFungible", None), id="kind"),
    ],
)
def test_false_metadata_of_first_contact_is_corrected_by_two_honest_cycles(
    tell: Any, false: tuple[str, int | None], node: AnvilNode, make_service: MakeService
) -> None:
    with FaultProxy(node.url) as proxy:
        world = World(node, wallet_count=2)
        token = world.deploy_token("GOLD", 18)
        world.distribute(token, 1_000)
        service = make_service(LocalNetwork("local", proxy.url))
        service.token(service.tenant(), token.address, tracked_from=instant(node, node.head()))
        proxy.inject(LieFault(methods=["eth_call"], tell=tell))
        service.good_cycle()
        assert described(service) == [(*false, "Unconfirmed", None, None)]
        # There is no second reading at the same block.
        proxy.clear()
        service.good_cycle()
        assert described(service) == [(*false, "Unconfirmed", None, None)]
        world.mine()
        service.good_cycle()
        assert described(service) == [(*false, "Contradicted", "Fungible", 18)]
        world.mine()
        service.good_cycle()
        assert described(service) == [("Fungible", 18, "Confirmed", None, None)]
        # A later lie changes nothing.
        proxy.inject(LieFault(methods=["eth_call"], tell=tell))
        world.mine()
        service.good_cycle()
        assert described(service) == [("Fungible", 18, "Confirmed", None, None)]
