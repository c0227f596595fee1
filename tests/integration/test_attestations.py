"""Attested blocks: every balance confirmed, and the node's own, on random chains; what they ask, and what ends them."""

import random
from typing import Any

import pytest

from api.serving import load_queries
from control.operations import OperationRow, Status
from control.subjects import SubjectRow
from pipelines.load.state import record_publication, record_transform
from pipelines.load.warehouse import open_warehouse
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World, call_data
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import CYCLE, Stores, open_marts, run_dbt
from tests.integration.harness import LocalNetwork
from tests.integration.oracle import instant

# Blocks after which the node calls one final.
DEPTH = 64


class Case:
    """A token among wallets whose balances also change without a word, and a service that knows its history."""

    def __init__(
        self, node: AnvilNode, make_service: MakeService, contract: str = "LyingToken", url: str | None = None
    ) -> None:
        self.node = node
        self.contract = contract
        self.world = World(node, wallet_count=8)
        self.token: Token = self.world.deploy_strange_token(contract, "HUSH", 6)
        self.created = node.head()
        self.world.distribute(self.token, 1_000, self.world.wallets[:6])
        self.service = make_service(LocalNetwork("local", url or node.url))
        self.tenant = self.service.tenant()

    def live(self, seed: int, blocks: int, *, is_silent: bool = True) -> None:
        """Let random things happen."""
        chance = random.Random(seed)
        for _ in range(blocks):
            if chance.random() < 0.6:
                sender, receiver = chance.sample(self.world.wallets, 2)
                if amount := min(chance.randint(1, 50), self.now(sender)):
                    self.world.transfer(self.token, sender, receiver, amount)
            if is_silent and self.contract == "LyingToken" and chance.random() < 0.15:
                self.quietly("mint_silently", chance.choice(self.world.wallets), chance.randint(1, 9))
            if is_silent and self.contract == "RebaseToken" and chance.random() < 0.1:
                data = call_data("RebaseToken", "rebase", chance.choice((9, 11)) * 10**17)
                self.world.submit(self.world.deployer, self.token.address, data)
            self.world.mine()

    def rest(self, blocks: int = DEPTH + 1) -> None:
        """Let blocks pass in which nothing happens."""
        for _ in range(blocks):
            self.world.mine()

    def quietly(self, function: str, holder: str, amount: int) -> None:
        data = call_data(self.contract, function, holder, amount, True)
        self.world.submit(self.world.deployer, self.token.address, data)

    def now(self, holder: str) -> int:
        return self.world.balance_of(self.token, holder, self.node.head())

    def tracked_with_history(self) -> SubjectRow:
        """Track the token from the newest block on, and collect what was before."""
        opened_at = instant(self.node, self.node.head())
        self.subject = self.service.token(self.tenant, self.token.address, tracked_from=opened_at)
        self.service.ask_history(self.tenant, self.subject, "creation", f"block:{self.node.head() - 1}")
        self.service.good_cycle()
        self.service.history()
        self.build()
        return self.subject

    def build(self) -> None:
        """One more cycle, in the marts and published."""
        self.service.good_cycle()
        self.stores = Stores(self.service.settings.data_dir)
        run_dbt(self.stores, *CYCLE)
        with open_warehouse(self.stores.warehouse) as connection:
            ((batch, version),) = connection.execute(
                "select (select max(batch_id) from raw.batches), (select count(*) from raw.publications)"
            ).fetchall()
            record_transform(connection, batch, "tests")
            record_publication(connection, version + 1, batch)

    def ask(self, block: int) -> OperationRow:
        return self.service.ask_attestation(self.tenant, self.subject, f"block:{block}")

    def attest(self, block: int) -> OperationRow:
        """Ask for a block, read it, build, and say how the operation stands then."""
        operation = self.ask(block)
        self.service.attest()
        self.build()
        self.service.attest()
        return self.service.operation(operation)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with open_marts(self.stores) as connection:
            return connection.execute(query).fetchall()

    def records(self, columns: str = "*") -> list[tuple[Any, ...]]:
        return self.rows(f"select {columns} from marts.attestations order by attestation_number")

    def cap_table(self, block: int) -> dict[str, tuple[int, str, int | None]]:
        """Holder: quantity, reconciliation and checked block, as the API's query says them."""
        with open_marts(self.stores) as connection:
            ((first,),) = connection.execute(
                "select from_block from marts.coverage where is_covered and $block between from_block and to_block",
                {"block": block},
            ).fetchall()
            found = connection.execute(
                "select holder_address, quantity_raw::varchar, reconciliation, checked_block_number "
                f"from ({load_queries()['holders_as_of'].rstrip().rstrip(';')})",
                {
                    "subject_key": self.subject.subject_key,
                    "tenant_id": self.tenant.tenant_id,
                    "first_block": first,
                    "block_number": block,
                },
            ).fetchall()
        return {holder: (int(quantity), word, checked) for holder, quantity, word, checked in found}

    def truth(self, block: int) -> dict[str, int]:
        """Everybody's balance, by the node."""
        everybody = [*self.world.wallets, self.world.deployer]
        found = dict(zip(everybody, self.world.balances_of(self.token, everybody, block), strict=True))
        return {holder: quantity for holder, quantity in found.items() if quantity}

    def expect_attested(self, block: int) -> None:
        """Every row of the block is the node's, and confirmed; the record sums them up."""
        shown, truth = self.cap_table(block), self.truth(block)
        assert {holder: quantity for holder, (quantity, _, _) in shown.items()} == truth
        assert {word for _, word, _ in shown.values()} <= {"Reconciled", "Adjusted"}
        assert all(checked is not None for _, _, checked in shown.values())
        (record,) = self.rows(
            "select status, balance_count, unconfirmed_count, balances_raw::varchar, total_supply_raw::varchar, "
            f"block_hash from marts.attestations where block_number = {block} and not is_superseded"
        )
        status, count, unconfirmed, balances, supply, block_hash = record
        assert status in ("Reconciled", "Adjusted")
        assert (count, unconfirmed, int(balances)) == (len(truth), 0, sum(truth.values()))
        assert int(supply) == self.world.total_supply(self.token, block)
        assert block_hash == self.node.rpc("eth_getBlockByNumber", [hex(block), False])["hash"]


@pytest.mark.parametrize("contract", ["LyingToken", "RebaseToken"])
@pytest.mark.parametrize("seed", range(3))
def test_attested_blocks_of_random_chains_are_the_nodes(
    node: AnvilNode, make_service: MakeService, contract: str, seed: int
) -> None:
    case = Case(node, make_service, contract)
    case.live(seed, 30)
    case.tracked_with_history()
    case.live(seed + 100, 8)
    last = node.head()
    case.rest()
    case.build()
    chance = random.Random(seed)
    blocks = sorted(chance.sample(range(case.created + 2, last + 5), 3), reverse=seed % 2 == 0)
    for block in blocks:
        operation = case.attest(block)
        assert (operation.status, operation.to_block) == (Status.SUCCEEDED, block), operation
        case.expect_attested(block)
    case.live(seed + 200, 6)
    case.build()
    case.build()
    for block in blocks:
        case.expect_attested(block)
