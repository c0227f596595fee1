"""A network's cycle over a real node: rows, coverage, metadata and readings."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.chain.world import MAX_UINT256, ZERO_ADDRESS, BlockRange, Token, World
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import check_anchors, check_truth, instant

EMPTY_ADDRESS = "0x" + "ab" * 20


@dataclass(frozen=True)
class Chain:
    """A finished chain: contracts, traffic before `opening`, and traffic from it on."""

    node: AnvilNode
    world: World
    gold: Token
    tax: Token
    old: Token
    plain: Token
    huge: Token
    nft: str
    multi: str
    opening: int
    traffic: BlockRange

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The fungible ones."""
        return (self.gold, self.tax, self.old, self.plain, self.huge)

    def service(self, make_service: MakeService, **network: object) -> Service:
        """A service with this chain as its network."""
        return make_service(LocalNetwork("local", self.node.url, **network))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        world = World(node, wallet_count=12, gas_price=10**9)
        world.place_multicall()
        gold = world.deploy_token("GOLD", 18)
        tax = world.deploy_token("TAX", 6, fee_basis_points=250)
        old = world.deploy_bytes32_token("OLD", 0)
        plain = Token(world.deploy("NoDecimalsToken", 10**9), "NoDecimalsToken", "PLAIN", None)
        huge = world.deploy_token("HUGE", 77, supply=MAX_UINT256)
        nft = world.deploy("Nft721", "Cats", "CAT")
        multi = world.deploy("Multi1155")
        for token in (gold, tax, old, plain):
            world.distribute(token, 1_000_000)
        world.transfer_many(40, [gold, tax, old, plain], per_block=10)
        opening = node.head() + 1
        first, second, third, *_ = world.wallets
        traffic = world.transfer_many(80, [gold, tax, old, plain], per_block=10)
        world.transfer(huge, world.deployer, first, MAX_UINT256)
        world.mine()
        world.transfer(huge, first, second, MAX_UINT256)
        world.submit(second, third, value=5 * 10**18)
        world.mine()
        world.submit(world.deployer, nft, "0x40c10f19" + first[2:].rjust(64, "0") + f"{7:064x}")
        world.submit(world.deployer, multi, "0x156e29f6" + first[2:].rjust(64, "0") + f"{7:064x}{9:064x}")
        # A creation, and a failed transaction with value, which still costs its fee.
        world.submit(first, None, "0x6001600c60003960016000f300")
        world.submit(first, gold.address, "0xdeadbeef", value=1)
        last = world.mine()
        yield Chain(node, world, gold, tax, old, plain, huge, nft, multi, opening, BlockRange(traffic.first, last))


@pytest.mark.proof("collected rows and coverage are exactly the node's")
def test_rows_and_coverage_are_exactly_the_nodes(chain: Chain, make_service: MakeService) -> None:
    service = chain.service(make_service)
    tenant = service.tenant()
    opened = instant(chain.node, chain.opening)
    for token in chain.tokens:
        service.token(tenant, token.address, tracked_from=opened)
    for wallet in chain.world.wallets[:3]:
        service.wallet(tenant, wallet, tracked_from=opened)
    report = service.good_cycle()
    assert report.head == chain.node.head()
    check_truth(service, chain.node)
    assert check_anchors(service, chain.node) > 30
    (count,) = service.query("select count(*), count(distinct token_address) from raw.token_transfers")
    assert count == (len(chain.world.transfer_logs(chain.opening, chain.traffic.last)), len(chain.tokens))


def test_wallet_holdings_are_read_before_its_window(chain: Chain, make_service: MakeService) -> None:
    """Native, common and configured tokens, also those that never move afterwards."""
    service = chain.service(make_service, common_tokens=[("OLD", chain.old.address, 0)])
    tenant = service.tenant()
    wallet = chain.world.wallets[5]
    opened_at = chain.node.head()
    service.token(tenant, chain.gold.address)
    service.wallet(tenant, wallet, tracked_from=instant(chain.node, opened_at))
    service.good_cycle()
    check_truth(service, chain.node)
    held = service.query(
        "select token_address, quantity_raw::varchar from raw.balance_observations where block_number = ? order by 1",
        [opened_at - 1],
    )
    expected = {"native": chain.world.native_balance(wallet, opened_at - 1)} | {
        token.address: chain.world.balance_of(token, wallet, opened_at - 1) for token in (chain.gold, chain.old)
    }
    assert {token: int(quantity) for token, quantity in held} == expected


@pytest.mark.ci
def test_metadata_has_the_kind_of_each_contract(chain: Chain, make_service: MakeService) -> None:
    service = chain.service(make_service)
    tenant = service.tenant()
    opened = instant(chain.node, chain.opening)
    for token in (*chain.tokens, chain.nft, chain.multi, EMPTY_ADDRESS):
        address = token if isinstance(token, str) else token.address
        service.token(tenant, address, tracked_from=opened)
    service.good_cycle()
    rows = service.query(
        "select token_address, contract_status, standard, symbol, decimals from raw.token_metadata order by 1"
    )
    assert rows == sorted(
        [
            (chain.gold.address, "Fungible", "ERC-20", "GOLD", 18),
            (chain.tax.address, "Fungible", "ERC-20", "TAX", 6),
            (chain.old.address, "Fungible", "ERC-20", "OLD", 0),
            (chain.plain.address, "Fungible", "ERC-20", None, None),
            (chain.huge.address, "Fungible", "ERC-20", "HUGE", 77),
            (chain.nft, "NotFungible", "ERC-721", "CAT", None),
            (chain.multi, "NotFungible", "ERC-1155", None, None),
            (EMPTY_ADDRESS, "NoContract", None, None, None),
        ]
    )
    details = dict(service.query("select token_address, detail from raw.token_metadata"))
    assert details[chain.gold.address] is None
    assert "symbol() reverts" in details[chain.plain.address]
    assert (
        "decimals() returns nothing" in details[chain.plain.address]
        or "decimals() reverts" in details[chain.plain.address]
    )
    check_truth(service, chain.node)
    of_others = service.query(
        "select count(*) from raw.token_transfers where token_address in (?, ?, ?)",
        [chain.nft, chain.multi, EMPTY_ADDRESS],
    )
    assert of_others == [(0,)]
    assert {row[2] for row in service.raw_rows()["coverage"]} >= {chain.nft, chain.multi, EMPTY_ADDRESS}


def test_untracked_token_has_only_metadata(chain: Chain, make_service: MakeService) -> None:
    service = chain.service(make_service)
    service.token(service.tenant(), chain.gold.address)
    service.good_cycle()
    rows = service.raw_rows()
    assert [row[1] for row in rows["token_metadata"]] == [chain.gold.address]
    assert not any(rows[table] for table in ("token_transfers", "coverage", "balance_observations", "view_ranges"))


@pytest.mark.ci
def test_tenants_share_one_collection(chain: Chain, make_service: MakeService) -> None:
    """The third tenant has a shorter window: no blocks are collected again, but it gets its own anchors."""
    service = chain.service(make_service)
    for name in ("acme", "second"):
        service.token(service.tenant(name), chain.gold.address, tracked_from=instant(chain.node, chain.opening))
    service.good_cycle()
    before = service.raw_rows()
    assert len(before["coverage"]) == 1
    later = chain.opening + 3
    service.token(service.tenant("third"), chain.gold.address, tracked_from=instant(chain.node, later))
    second = service.good_cycle()
    assert second.ranges == []
    assert "token_transfers" not in second.rows
    after = service.raw_rows()
    assert (after["token_transfers"], after["coverage"]) == (before["token_transfers"], before["coverage"])
    check_truth(service, chain.node)
    check_anchors(service, chain.node)


@pytest.mark.ci
def test_nothing_new_writes_nothing(chain: Chain, make_service: MakeService) -> None:
    service = chain.service(make_service)
    tenant = service.tenant()
    service.token(tenant, chain.gold.address, tracked_from=instant(chain.node, chain.opening))
    service.wallet(tenant, chain.world.wallets[0], tracked_from=instant(chain.node, chain.opening))
    service.good_cycle()
    before = service.raw_rows()
    (newest,) = service.query("select max(batch_id) from raw.batches")
    again = service.good_cycle()
    assert again.ranges == []
    assert not any(again.rows.values()), again.rows
    assert service.raw_rows() == before
    assert service.query("select * from raw.changes where batch_id > ?", newest) == []


@pytest.mark.ci
def test_coverage_of_live_subject_is_extended_and_empty_ranges_count(
    node: AnvilNode, make_service: MakeService
) -> None:
    world = World(node, wallet_count=4)
    gold, silent = world.deploy_token("GOLD", 18), world.deploy_token("SILENT", 18)
    service = make_service(LocalNetwork("local", node.url))
    tenant = service.tenant()
    opening = node.head() + 1
    for _ in range(3):
        world.distribute(gold, 5)
        if service.raw_rows()["coverage"] == []:
            for token in (gold, silent):
                service.token(tenant, token.address, tracked_from=instant(node, opening))
            service.wallet(tenant, EMPTY_ADDRESS, tracked_from=instant(node, opening))
        service.good_cycle()
        world.mine()
        world.mine()
        service.good_cycle()
    rows = service.query("select address, from_block, to_block, row_count from raw.coverage order by row_count")
    head = node.head()
    assert sorted(rows) == sorted(
        [
            (gold.address, opening, head, 12),
            (silent.address, opening, head, 0),
            *2 * [(EMPTY_ADDRESS, opening, head, 0)],
        ]
    )
    check_truth(service, node)


@pytest.mark.proof("nothing is collected while tracking is disabled")
def test_nothing_is_collected_between_disable_and_enable(node: AnvilNode, make_service: MakeService) -> None:
    world = World(node, wallet_count=6)
    gold = world.deploy_token("GOLD", 18)
    world.distribute(gold, 1000)
    service = make_service(LocalNetwork("local", node.url))
    tenant = service.tenant()
    first = world.transfer_many(10, [gold], per_block=5)
    subject = service.token(tenant, gold.address, tracked_from=instant(node, first.first))
    wallet = service.wallet(tenant, world.wallets[0], tracked_from=instant(node, first.first))
    service.good_cycle()
    gap = world.transfer_many(10, [gold], per_block=5)
    for each in (subject, wallet):
        service.track(tenant, each, False, instant(node, gap.first))
    service.good_cycle()
    world.transfer_many(10, [gold], per_block=5)
    again = world.transfer_many(10, [gold], per_block=5)
    for each in (subject, wallet):
        service.track(tenant, each, True, instant(node, again.first))
    service.good_cycle()
    check_truth(service, node)
    check_anchors(service, node)
    numbers = {number for (number,) in service.query("select distinct block_number from raw.token_transfers")}
    assert numbers.isdisjoint(range(gap.first, again.first))
    assert numbers >= set(range(again.first, again.last + 1))
    # All known holders get a new anchor before the second window, even without movements in it.
    moved = {
        party
        for row in service.query(
            "select from_address, to_address from raw.token_transfers where block_number < ?", [gap.first]
        )
        for party in row
    } - {ZERO_ADDRESS}
    anchored = service.query(
        "select holder_address from raw.balance_observations where token_address = ? and block_number = ?",
        [gold.address, again.first - 1],
    )
    assert moved <= {holder for (holder,) in anchored}


def test_window_between_two_blocks_collects_nothing(node: AnvilNode, make_service: MakeService) -> None:
    world = World(node, wallet_count=4, block_seconds=12)
    gold = world.deploy_token("GOLD", 18)
    world.distribute(gold, 10)
    service = make_service(LocalNetwork("local", node.url))
    tenant = service.tenant()
    opened = instant(node, node.head())
    subject = service.token(tenant, gold.address)
    service.add_window(
        tenant,
        subject,
        opened.fromtimestamp(opened.timestamp() + 1, opened.tzinfo),
        opened.fromtimestamp(opened.timestamp() + 2, opened.tzinfo),
    )
    world.distribute(gold, 10)
    service.good_cycle()
    rows = service.raw_rows()
    assert not any(rows[table] for table in ("token_transfers", "coverage", "balance_observations"))
    check_truth(service, node)


@pytest.mark.ci
def test_many_subjects_with_different_windows(node: AnvilNode, make_service: MakeService) -> None:
    """Addresses that miss the same blocks are requested together, but each is only covered over its own windows."""
    world = World(node, wallet_count=10, seed=3)
    tokens = [world.deploy_token(f"T{index}", 18) for index in range(5)]
    for token in tokens:
        world.distribute(token, 1000)
    traffic = world.transfer_many(120, tokens, per_block=6)
    service = make_service(LocalNetwork("local", node.url, max_log_range=4))
    tenant = service.tenant()
    for index, token in enumerate(tokens):
        subject = service.token(tenant, token.address, tracked_from=instant(node, traffic.first + index))
        service.track(tenant, subject, False, instant(node, traffic.first + 3 + 2 * index))
        service.track(tenant, subject, True, instant(node, traffic.first + 8 + index))
    for index in range(4):
        service.wallet(tenant, world.wallets[index], tracked_from=instant(node, traffic.first + 4 * index))
    service.good_cycle()
    check_truth(service, node)
    check_anchors(service, node)
    world.transfer_many(30, tokens, per_block=6)
    service.good_cycle()
    check_truth(service, node)
    check_anchors(service, node)
