"""The world of a UTXO chain makes all kinds of payments and blocks; the oracle agrees with the node on each of them."""

import itertools
from collections.abc import Iterator

import pytest

from tests.chain.node import NodeError
from tests.chain.utxo_mweb import ACTIVATION_HEIGHT, MwebTraffic
from tests.chain.utxo_node import BASE_UNITS, UtxoNode, base_units
from tests.chain.utxo_world import KINDS, OPEN_SCRIPT, UtxoWorld, data_script, old_form, script_of, subsidy
from tests.oracles.utxo_chain import ChainOracle, ChainTransaction

# It tests a tool of the tests.
pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def shared_world() -> Iterator[UtxoWorld]:
    with UtxoNode() as node:
        world = UtxoWorld(node)
        world.mature(30)
        yield world


@pytest.fixture
def world(shared_world: UtxoWorld) -> UtxoWorld:
    """A world with coins of the miner, an empty queue and an empty mempool. Earlier tests may have left blocks."""
    shared_world.sync()
    shared_world.mine(mempool=True)
    return shared_world


def checked(world: UtxoWorld) -> ChainOracle:
    oracle = ChainOracle(world.node)
    oracle.check()
    return oracle


def found(oracle: ChainOracle, txid: str) -> ChainTransaction:
    return next(one for one in oracle.transactions() if one.txid == txid)


def test_the_node_agrees_on_addresses_and_scripts(world: UtxoWorld) -> None:
    for kind in KINDS:
        address = world.address(kind)
        answer = world.node.rpc("validateaddress", address)
        assert answer["isvalid"]
        assert (answer["address"], answer["scriptPubKey"]) == (address, script_of(address).hex())
    with pytest.raises(ValueError, match="unknown kind"):
        world.address("p2pzz")
    # A bitcoin address of the main network.
    with pytest.raises(ValueError, match="another network"):
        script_of("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa")


def test_keys_follow_from_the_seed(world: UtxoWorld) -> None:
    assert UtxoWorld(world.node).miner == world.miner
    assert UtxoWorld(world.node, seed=2).miner != world.miner


def test_the_node_signs_with_a_key_of_the_world(world: UtxoWorld) -> None:
    address = world.address("p2pkh")
    signed = world.node.rpc("signmessagewithprivkey", world.wif(address)[0], "hello")
    assert world.node.rpc("verifymessage", address, signed, "hello")


def test_each_kind_receives_and_spends_with_change_to_itself(world: UtxoWorld) -> None:
    owners = [world.address(kind) for kind in KINDS]
    txid = world.pay(dict.fromkeys(owners, 1000), fee=70)
    world.mine()
    for owner in owners:
        world.pay({world.miner: 600}, senders=[owner], fee=100)
    world.mine()
    oracle = checked(world)
    assert found(oracle, txid).fee == 70
    for owner in owners:
        assert [oracle.balance(owner, world.head - age) for age in (2, 1, 0)] == [0, 1000, 300]
        assert [one.net[owner] for one in oracle.transactions(owner)] == [1000, -700]
        assert oracle.scan([owner]) == {owner: 300}
    # The block's coinbase took the five fees.
    assert oracle.transactions(world.miner)[-6].net[world.miner] == subsidy(world.head) + 500


def test_several_senders_and_change_to_another_address(world: UtxoWorld) -> None:
    first, second, change, receiver = (world.address() for _ in range(4))
    world.pay([(first, 500), (first, 500), (second, 700)])
    world.mine()
    txid = world.pay({receiver: 900}, senders=[first, second], fee=10, change=change)
    world.mine()
    made = found(checked(world), txid)
    # One coin of each sender sufficed.
    assert made.net == {first: -500, second: -700, receiver: 900, change: 290}
    with pytest.raises(ValueError, match="are missing"):
        world.pay({receiver: 1000}, senders=[first])
    with pytest.raises(ValueError, match="no coin"):
        world.pay({receiver: 1}, senders=[second])


def test_many_inputs_and_many_outputs(world: UtxoWorld) -> None:
    owner = world.address()
    world.pay([(owner, 1000 + number) for number in range(500)])
    world.mine()
    assert len(world.coins(owner)) == 500
    txid = world.pay({}, inputs=world.coins(owner), fee=0, change=world.miner)
    world.mine()
    oracle = checked(world)
    made = found(oracle, txid)
    assert (len(made.inputs), len(made.outputs)) == (500, 1)
    assert made.net[owner] == -sum(range(1000, 1500))
    assert oracle.balance(owner, world.head) == 0


def test_outputs_without_an_address_change_no_balance(world: UtxoWorld) -> None:
    bare_key, multisig = world.p2pk_script(), world.multisig_script()
    strange = [
        (data_script(b"note"), 0),
        (data_script(b"burnt"), 40),
        (multisig, 50),
        (bare_key, 60),
        (OPEN_SCRIPT, 70),
        (b"\xff\xff", 80),
        (b"", 90),
    ]
    txid = world.pay([*strange, (world.address(), 0)], fee=0)
    world.mine()
    made = found(checked(world), txid)
    types = ["nulldata", "nulldata", "multisig", "pubkey", "nonstandard", "nonstandard", "nonstandard"]
    assert [(one.type, one.amount, one.address) for one in made.outputs[:7]] == [
        (kind, amount, None) for kind, (_, amount) in zip(types, strange, strict=True)
    ]
    # An output of 0 has an address all the same.
    assert made.net[str(made.outputs[7].address)] == 0
    # Their owners can spend them, and the open one.
    for script in (multisig, bare_key, OPEN_SCRIPT):
        world.pay([(world.miner, 50)], senders=[script], fee=0)
    world.mine()
    checked(world)


def test_a_program_of_a_future_witness_version_has_an_address(world: UtxoWorld) -> None:
    script = b"\x52\x20" + bytes(range(32))
    txid = world.pay([(script, 5)])
    world.mine()
    oracle = checked(world)
    output = found(oracle, txid).outputs[0]
    assert output.type == "witness_unknown"
    assert script_of(str(output.address)) == script
    assert oracle.balance(str(output.address), world.head) == 5


def test_both_forms_of_a_script_hash_are_one_address(world: UtxoWorld) -> None:
    address = world.address("p2sh-p2wpkh")
    assert old_form(address) != address
    world.pay([(address, 5), (old_form(address), 6)])
    world.mine()
    oracle = checked(world)
    assert oracle.balance(address, world.head) == 11
    assert old_form(address) not in oracle.addresses()
    assert world.node.rpc("validateaddress", old_form(address))["address"] == address


def test_a_chain_of_payments_within_one_block(world: UtxoWorld) -> None:
    steps = [world.address(kind) for kind in KINDS]
    world.pay({steps[0]: 1000})
    for giver, taker in itertools.pairwise(steps):
        world.pay({taker: world.coins(giver)[0].amount - 10}, senders=[giver], fee=10)
    world.mine()
    oracle = checked(world)
    assert oracle.balance(steps[-1], world.head) == 960
    assert {one.height for step in steps for one in oracle.transactions(step)} == {world.head}
    assert [sum(one.net[step] for one in oracle.transactions(step)) for step in steps[:-1]] == [0, 0, 0, 0]


def test_a_coinbase_pays_several_addresses_and_may_claim_too_little(world: UtxoWorld) -> None:
    first, second = world.address("p2tr"), world.address("p2pkh")
    world.pay({first: 1}, fee=30)
    world.mine(coinbase=[(first, 7), (second, subsidy(world.head + 1) + 20)])
    oracle = checked(world)
    assert oracle.transactions(second)[0].net == {first: 7, second: subsidy(world.head) + 20}
    assert oracle.transactions(second)[0].is_coinbase
    with pytest.raises(ValueError, match="bad-cb-amount"):
        world.mine(coinbase=[(first, subsidy(world.head + 1) + 1)])


def test_coinbases_mature_after_a_hundred_blocks(world: UtxoWorld) -> None:
    pool = world.address()
    made = world.mine(to=pool)
    world.mine(98)
    assert world.coins(pool) == []
    world.mine()
    assert [coin.coinbase_height for coin in world.coins(pool)] == [made]
    world.pay({world.miner: 1}, senders=[pool])
    world.mine()


def test_subsidies_halve() -> None:
    with UtxoNode() as node:
        world = UtxoWorld(node)
        world.mine(310)
        world.mine(coinbase=[(world.miner, subsidy(311))])
        oracle = checked(world)
    coinbases = {one.height: sum(out.amount for out in one.outputs) for one in oracle.transactions() if one.is_coinbase}
    assert [coinbases[height] for height in (149, 150, 299, 300, 311)] == [
        BASE_UNITS * 50,
        BASE_UNITS * 25,
        BASE_UNITS * 25,
        BASE_UNITS * 25 // 2,
        BASE_UNITS * 25 // 2,
    ]


def test_payments_by_way_of_the_mempool(world: UtxoWorld) -> None:
    receiver = world.address()
    world.pay([(receiver, 5), (data_script(b"x"), 1)], fee=5000)
    sent = world.broadcast()
    with pytest.raises(ValueError, match="mempool"):
        world.mine(mempool=True, timestamp=2_000_000_000)
    world.mine()
    assert world.node.rpc("getrawmempool") == sent
    world.mine(mempool=True)
    assert world.node.rpc("getrawmempool") == []
    oracle = checked(world)
    assert oracle.balance(receiver, world.head) == 5
    assert sum(output.amount for output in oracle.transactions()[-2].outputs) == subsidy(world.head) + 5000


def test_a_reorganisation_with_a_double_spend(world: UtxoWorld) -> None:
    giver, taker, other = (world.address() for _ in range(3))
    world.pay({giver: 1000})
    world.mine()
    kept = world.pay({taker: 3})
    world.mine()
    lost = world.pay({taker: 400}, senders=[giver], fee=100)
    world.mine(2)
    before = checked(world)
    assert (before.balance(taker, world.head), before.balance(giver, world.head)) == (403, 500)

    def double_spend() -> None:
        assert [coin.amount for coin in world.coins(giver)] == [1000]
        world.pay({other: 700}, senders=[giver], fee=100)
        world.repeat(kept)

    assert world.reorganise(3, 4, double_spend) == before.head + 1
    after = checked(world)
    assert after.hashes[: before.head - 2] == before.hashes[:-3]
    assert not set(after.hashes[before.head - 2 :]) & set(before.hashes)
    assert [after.balance(one, after.head) for one in (giver, taker, other)] == [200, 3, 700]
    assert lost not in {one.txid for one in after.transactions()}
    world.repeat(lost)
    with pytest.raises(NodeError, match="missingorspent"):
        world.broadcast()
    # The replaced block is still readable by its hash, off the active chain.
    assert world.node.rpc("getblock", before.hashes[-1])["confirmations"] == -1


def test_a_replaced_payment_returns_from_the_mempool(world: UtxoWorld) -> None:
    receiver = world.address()
    txid = world.pay({receiver: 5})
    world.mine()
    world.reorganise(1, 2)
    assert checked(world).transactions(receiver) == []
    assert world.node.rpc("getrawmempool") == [txid]
    world.mine(mempool=True)
    assert checked(world).balance(receiver, world.head) == 5


def test_a_block_may_be_earlier_than_its_parent(world: UtxoWorld) -> None:
    parent = world.node.block_time(world.head)
    world.mine(timestamp=parent - 300)
    world.mine()
    assert [world.node.block_time(world.head - age) - parent for age in (1, 0)] == [-300, world.node.step_seconds]
    with pytest.raises(ValueError, match="time-too-old"):
        world.mine(timestamp=parent - 3000)


def test_the_world_continues_after_a_restart_and_after_a_kill(world: UtxoWorld) -> None:
    world.node.restart()
    world.mine()
    world.node.flush()
    kept = world.head
    world.pay({world.address(): 5})
    world.mine(3)
    world.node.kill()
    world.node.start()
    world.sync()
    assert world.head == kept
    world.pay({world.address(): 6})
    world.mine(3)
    checked(world)


def test_values_that_leave_mweb_reach_their_address() -> None:
    with UtxoNode(mweb=True) as node:
        traffic = MwebTraffic(node)
        receiver = UtxoWorld(node).miner
        traffic.pay_in("3")
        node.mine(traffic.address, 6)
        traffic.pay_out(receiver, "0.7")
        node.mine(traffic.address, 2)
        oracle = ChainOracle(node)
        oracle.check()
        assert oracle.head == ACTIVATION_HEIGHT + 8
        (made,) = oracle.transactions(receiver)
        assert [one.type for one in made.inputs] == ["witness_mweb_hogaddr"]
        assert [(one.type, one.address) for one in made.outputs] == [
            ("witness_mweb_hogaddr", None),
            ("witness_v0_keyhash", receiver),
        ]
        assert made.net == {receiver: base_units(7) // 10}


def test_the_oracle_notices_a_difference_from_the_node(world: UtxoWorld) -> None:
    oracle = ChainOracle(world.node)
    oracle.unspent.popitem()
    with pytest.raises(AssertionError):
        oracle.check()
    world.mine()
    with pytest.raises(AssertionError, match="has changed"):
        oracle.check()
