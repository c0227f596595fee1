"""Search for holders that no event names, compared with balanceOf on the node."""

from dataclasses import replace
from typing import Any

import pytest

from pipelines.balances import searches as holders
from pipelines.raw.builds import record_transform
from pipelines.raw.database import open_warehouse
from tests.chain.fault_proxy import FaultProxy, RpcFault
from tests.chain.node import AnvilNode
from tests.chain.world import World, call_data
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import LATER_CYCLE, build_over_nothing, open_marts, run_dbt
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import instant

# Models that these tests or the collection read.
_MODELS = (
    "--select",
    *(f"+{name}" for name in ("cap_tables", "cap_table_summaries", "token_activities", "tokens")),
    *(
        f"+{name}"
        for name in ("requests__searches", "requests__readings", "requests__attestations", "int_views_transformed")
    ),
)


class _Case:
    """A token tracked from creation; its constructor credits creator, owner and token without an event."""

    def __init__(self, node: AnvilNode, contract: str = "QuietToken") -> None:
        self.node = node
        self.world = World(node, wallet_count=8)
        self.owner = self.world.wallets[7]
        self.world.mine()
        owner = (self.owner,) if contract == "QuietToken" else ()
        self.token = self.world.deploy_strange_token(contract, "HUSH", 6, *owner)
        self.created = node.head()

    def mint_for(self, sender: str, receiver: str, amount: int) -> None:
        self.world.submit(sender, self.token.address, call_data("QuietToken", "mint_for", receiver, amount))

    def migrate(self, holder: str, amount: int) -> int:
        """Credit a holder without an event and return the block."""
        self.world.submit(self.world.deployer, self.token.address, call_data("QuietToken", "migrate", holder, amount))
        return self.world.mine()

    def tracked(self, make_service: MakeService, url: str | None = None, **network: Any) -> Service:
        self.service = make_service(LocalNetwork("local", url or self.node.url, **network))
        self.stores = build_over_nothing(self.service.settings.data_dir)
        self.tenant = self.service.tenant()
        self.track(self.tenant)
        return self.service

    def track(self, tenant: Any) -> None:
        """Track the token from now on, and request its history from creation."""
        subject = self.service.token(tenant, self.token.address, tracked_from=instant(self.node, self.node.head()))
        self.service.good_cycle()
        self.service.ask_history(tenant, subject, "creation")
        (report,) = self.service.history()
        assert report.error is None
        self.build()

    def build(self) -> None:
        self.service.good_cycle()
        self.transform()

    def transform(self) -> None:
        run_dbt(self.stores, *LATER_CYCLE, *_MODELS)
        with open_warehouse(self.service.settings.warehouse_path) as connection:
            ((batch_id,),) = connection.execute("select max(batch_id) from raw.batches").fetchall()
            record_transform(connection, batch_id, "the project")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with open_marts(self.stores) as connection:
            return connection.execute(query).fetchall()

    def holders(self) -> dict[str, int]:
        return {
            holder: int(quantity)
            for holder, quantity in self.rows("select holder_address, quantity_raw::varchar from marts.cap_tables")
        }

    def adjustments(self) -> list[tuple[Any, ...]]:
        return self.rows(
            "select to_address, amount_raw::varchar, block_number, is_located from marts.token_activities"
            " where activity_type = 'Adjustment' order by to_address"
        )

    def summary(self) -> tuple[Any, ...]:
        (row,) = self.rows("select unattributed_raw::varchar, holders_status from marts.cap_table_summaries")
        return row

    def chain_balances(self, *holders_: str) -> dict[str, int]:
        """Return the balances at the node's head."""
        return {holder: self.world.balance_of(self.token, holder, self.node.head()) for holder in holders_}

    def searched(self) -> int:
        """Return the number of the searches' requests to the node."""
        return int(
            self.service.query(
                "select coalesce(sum(request_count), 0) from raw.requests_spent where purpose = 'Search'"
            )[0][0]
        )


@pytest.mark.proof("holders without a transfer are found")
def test_holders_credited_silently_by_a_constructor_are_found(node: AnvilNode, make_service: MakeService) -> None:
    case = _Case(node)
    sender, receiver, *_ = case.world.wallets
    case.mint_for(sender, receiver, 5)
    case.world.mine()
    case.tracked(make_service)
    named = (case.world.deployer, case.owner, case.token.address)
    assert case.holders() == case.chain_balances(receiver)
    assert case.summary() == (str(sum(case.chain_balances(*named).values())), "HoldersUnknown")
    case.build()
    assert case.holders() == case.chain_balances(receiver, *named)
    assert case.summary() == ("0", "Complete")
    # Their adjustments are located like all others.
    case.build()
    chain = case.chain_balances(*named)
    assert case.adjustments() == [(holder, str(chain[holder]), case.created, True) for holder in sorted(named)]
    # There is no further search once all holders are found.
    spent = case.searched()
    assert spent > 0
    case.mint_for(sender, receiver, 6)
    case.world.mine()
    case.build()
    assert case.searched() == spent
    assert case.service.query("select count(*) from raw.searched_remainders") == [(0,)]


@pytest.mark.release
def test_holder_credited_by_a_migration_is_found_among_senders(node: AnvilNode, make_service: MakeService) -> None:
    case = _Case(node)
    sender, receiver, stranger, *_ = case.world.wallets
    case.mint_for(sender, receiver, 5)
    case.world.mine()
    case.tracked(make_service)
    case.build()
    assert case.summary() == ("0", "Complete")
    migrated = case.migrate(sender, 70)
    case.migrate(stranger, 8)
    case.world.mine()
    case.build()
    assert case.summary() == ("78", "HoldersUnknown")
    case.build()
    assert case.holders()[sender] == case.chain_balances(sender)[sender] == 70
    # A holder that never sent a transaction is not found: its balance stays unattributed and is not searched for again.
    assert stranger not in case.holders()
    assert case.summary() == ("8", "HoldersUnknown")
    spent = case.searched()
    case.world.mine()
    case.build()
    assert case.searched() == spent
    assert (sender, "70", migrated, True) in case.adjustments()
    # A new remainder starts a new search.
    case.migrate(stranger, 9)
    case.build()
    case.build()
    assert case.searched() > spent
    assert case.summary() == ("17", "HoldersUnknown")
    # The movement makes the holder known.
    case.world.transfer(case.token, stranger, receiver, 17)
    case.world.mine()
    case.build()
    assert case.summary() == ("0", "Complete")


@pytest.mark.release
def test_senders_in_blocks_after_a_reorganisation_are_searched(node: AnvilNode, make_service: MakeService) -> None:
    case = _Case(node)
    sender, receiver, stranger, other, *_ = case.world.wallets
    case.migrate(stranger, 8)
    case.migrate(other, 2)
    case.tracked(make_service)
    before = node.snapshot()
    case.mint_for(sender, receiver, 5)
    case.world.mine()
    for _ in range(3):
        case.build()
    assert case.summary() == ("10", "HoldersUnknown")
    spent = case.searched()
    node.revert(before)
    case.world = World(node, wallet_count=8, seed=9, block_seconds=13)
    case.mint_for(stranger, receiver, 5)
    case.world.mine()
    case.world.mine()
    case.build()
    case.build()
    assert case.holders()[stranger] == case.chain_balances(stranger)[stranger] == 8
    assert case.summary() == ("2", "HoldersUnknown")
    # Older blocks are not searched again: the requests are for the sender, then for its balance.
    assert case.searched() - spent <= 2
    spent = case.searched()
    case.world.mine()
    case.build()
    assert case.searched() == spent


@pytest.mark.release
def test_without_past_states_a_found_balance_is_booked_at_its_reading(
    node: AnvilNode, make_service: MakeService
) -> None:
    case = _Case(node)
    sender, receiver, *_ = case.world.wallets
    case.mint_for(sender, receiver, 5)
    case.world.mine()
    with FaultProxy(node.url) as proxy:

        def is_past(params: Any) -> bool:
            block = params[1]
            if isinstance(block, dict):
                block = node.rpc("eth_getBlockByHash", [block["blockHash"], False])["number"]
            return str(block).startswith("0x") and 0 < int(block, 16) < node.head()

        refusal = {"code": -32000, "message": "missing trie node"}
        proxy.inject(RpcFault(**refusal, methods=("eth_call", "eth_getCode", "eth_getBalance"), when=is_past))
        case.tracked(make_service, proxy.url)
        case.build()
        case.build()
    # The creation block is unknown, so the creator is not found.
    found = (case.owner, case.token.address)
    assert case.holders() == case.chain_balances(receiver, *found)
    chain = case.chain_balances(*found)
    assert case.adjustments() == [(holder, str(chain[holder]), node.head(), False) for holder in sorted(found)]
    assert case.summary() == (str(*case.chain_balances(case.world.deployer).values()), "HoldersUnknown")


@pytest.mark.release
def test_a_token_that_rebases_is_not_searched(node: AnvilNode, make_service: MakeService) -> None:
    case = _Case(node, "RebaseToken")
    case.world.distribute(case.token, 1_000, case.world.wallets)
    case.tracked(make_service)
    case.world.submit(case.world.deployer, case.token.address, call_data("RebaseToken", "rebase", 11_005 * 10**14))
    case.world.mine()
    case.build()
    case.build()
    assert case.rows("select behaviour from marts.tokens") == [("Rebasing",)]
    # Rounding of each balance leaves a part of the supply unattributed.
    assert int(case.summary()[0]) > 0
    assert case.searched() == 0


@pytest.mark.release
def test_a_search_is_bounded_and_resumes_in_the_next_cycle(
    node: AnvilNode, make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = _Case(node)
    *senders, receiver, _, _, _ = case.world.wallets
    for sender in senders:
        case.mint_for(sender, receiver, 5)
        case.world.mine()
    last = senders[-1]
    case.migrate(last, 40)
    case.world.mine()
    case.tracked(make_service)
    monkeypatch.setattr(holders, "MOST_TRANSACTIONS", 3)
    case.build()
    assert case.summary()[0] == "40"
    case.build()
    assert case.summary()[0] == "0"
    assert case.holders()[last] == case.chain_balances(last)[last]
    case.migrate(case.token.address[:-2] + "aa", 3)
    case.build()
    monkeypatch.setattr(holders, "MOST_READINGS", 5)
    for _ in range(2):
        case.build()
    ((reached, readings),) = case.service.query("select from_block, reading_count from raw.searched_remainders")
    assert reached is None
    assert readings <= 5


@pytest.mark.proof("a holder found for one tenant is not shown to another")
@pytest.mark.ci
def test_a_holder_found_for_one_tenant_is_not_shown_to_another(node: AnvilNode, make_service: MakeService) -> None:
    case = _Case(node)
    case.tracked(make_service)
    case.build()
    named = (case.world.deployer, case.owner, case.token.address)
    assert case.holders() == case.chain_balances(*named)
    case.world.mine()
    other = case.service.tenant("other")
    case.service.token(other, case.token.address, tracked_from=instant(node, node.head()))
    case.world.mine()
    case.build()
    case.build()
    # The other tenant's view does not begin with the token, so earlier balances are unknown.
    assert set(case.rows("select tenant_id from marts.cap_tables")) == {(case.tenant.tenant_id,)}


@pytest.mark.release
def test_a_search_waits_for_the_budget(node: AnvilNode, make_service: MakeService) -> None:
    case = _Case(node)
    service = case.tracked(make_service)
    unbounded = service.networks
    service.networks = {"local": replace(unbounded["local"], max_requests_per_day=1)}
    case.build()
    case.build()
    assert case.searched() == 0
    service.networks = unbounded
    case.build()
    assert case.summary() == ("0", "Complete")
    ((live,),) = service.query("select sum(request_count) from raw.requests_spent where purpose = 'Live'")
    assert 0 < case.searched() < live


@pytest.mark.release
def test_a_failed_search_does_not_stop_the_cycle(node: AnvilNode, make_service: MakeService) -> None:
    case = _Case(node)
    sender, receiver, *_ = case.world.wallets
    case.mint_for(sender, receiver, 5)
    case.world.mine()
    with FaultProxy(node.url) as proxy:
        case.tracked(make_service, proxy.url)
        proxy.inject(RpcFault(code=-32601, message="no such method", methods=("eth_getTransactionByHash",)))
        case.build()
        assert case.holders() == case.chain_balances(receiver)
    assert case.service.query("select call from raw.collection_failures") == [("eth_getTransactionByHash",)]
    case.service.point_at("local", node.url)
    case.build()
    assert case.summary() == ("0", "Complete")
