"""The misfortunes: the scripts' actions on the chain and through the API, and their expectations.

A script has up to three parts. The pipeline runs after each of them, for all scripts at once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.chain.fault_proxy import ActionFault, HttpFault
from tests.chain.world import ZERO_ADDRESS, Token, World, call_data
from tests.e2e.client import ApiError
from tests.integration.misfortunes_system import Subject, System, Tenant
from tests.integration.misfortunes_verify import Expectation

_COIN = 10**18
_MOST_CYCLES = 10


class Case:
    """A running misfortune, with its own wallets and expectations."""

    def __init__(self, system: System, wallets: Iterator[str]) -> None:
        self.system = system
        self.world: World = system.world
        self.expected: dict[Subject, Expectation] = {}
        self.checks: list[tuple[str, Callable[[], bool]]] = []
        self._wallets = wallets

    def wallets(self, count: int) -> list[str]:
        """Take unused wallets."""
        return [next(self._wallets) for _ in range(count)]

    def tenant(self, name: str = "acme") -> Tenant:
        """Return a tenant of the service."""
        return self.system.tenant(name)

    def add(self, what: Token | str, label: str, tenant: str = "acme") -> Subject:
        """Have a tenant add a token or a wallet for the comparison of end states."""
        subject = self.tenant(tenant).add(what, label)
        self.expected[subject] = Expectation()
        return subject

    def track(self, what: Token | str, label: str, tenant: str = "acme") -> Subject:
        """Have a tenant add a token or a wallet, and enable it."""
        subject = self.add(what, label, tenant)
        subject.enable()
        return subject

    def expect(self, subject: Subject, **expected: Any) -> None:
        """Set the facts that only the script knows, as for `Expectation`."""
        self.expected[subject] = Expectation(**expected)

    def require(self, what: str, is_so: Callable[[], bool]) -> None:
        """Have something checked at the end."""
        self.checks.append((what, is_so))

    def send(self, sender: str, to: str, data: str = "0x", value: int = 0, gas: int = 1_000_000) -> tuple[int, str]:
        """Make a block of one transaction; returns its number and the transaction's hash."""
        self.world.submit(sender, to, data, value=value, gas=gas)
        block = self.world.mine()
        (transaction,) = self.world.node.rpc("eth_getBlockByNumber", [hex(block), False])["transactions"]
        return block, transaction

    def pass_round(self, token: Token, holders: Sequence[str], amount: int) -> int:
        """Have every holder pay the next one, in one block."""
        for sender, receiver in zip(holders, [*holders[1:], holders[0]], strict=True):
            self.world.transfer(token, sender, receiver, amount)
        return self.world.mine()


Script = Callable[[Case], Iterator[None]]


@dataclass(frozen=True)
class Misfortune:
    """A script in up to three parts: the pipeline runs at every `yield`, and until it is idle after the end."""

    name: str
    told: str
    script: Script


def _mid_life_start(case: Case) -> Iterator[None]:
    token = case.world.deploy_token("GOLD", 18)
    wallet, *others = case.wallets(6)
    case.world.distribute(token, 10**6, [wallet, *others])
    case.world.transfer_many(30, [token], wallets=[wallet, *others], per_block=6)
    case.expect(case.track(token, "GOLD"), behaviour="Standard")
    case.track(wallet, "wallet in mid-life")
    case.world.submit(wallet, others[0], value=_COIN)
    case.world.transfer_many(20, [token], wallets=[wallet, *others[:3]], per_block=5)
    yield
    case.world.transfer_many(20, [token], wallets=[wallet, *others], per_block=5)


def _toggled(case: Case) -> Iterator[None]:
    token = case.world.deploy_token("SILVER", 6)
    wallet, *others = case.wallets(5)
    holders = [wallet, *others]
    case.world.distribute(token, 10**9, holders)
    subjects = [case.track(token, "SILVER"), case.track(wallet, "toggled wallet")]
    case.world.transfer_many(12, [token], wallets=holders, per_block=4)
    for subject in subjects:
        subject.disable()
    # These movements must stay invisible.
    case.pass_round(token, holders, 1_000)
    case.world.submit(wallet, others[1], value=3 * _COIN)
    case.world.mine()
    yield
    for subject in subjects:
        subject.enable()
    case.pass_round(token, holders, 77)
    for subject in subjects:
        subject.disable()
        # A window without a block.
        subject.enable()
        subject.disable()
    case.pass_round(token, holders, 1_001)
    for subject in subjects:
        subject.enable()
    case.world.submit(others[2], wallet, value=_COIN // 7)
    case.pass_round(token, holders, 5)
    yield
    case.pass_round(token, holders, 6)
    subjects[0].disable()
    case.pass_round(token, holders, 9)


def _rebasing(case: Case) -> Iterator[None]:
    token = case.world.deploy_strange_token("RebaseToken", "REB", 18)
    holders = case.wallets(4)
    case.world.distribute(token, 10**20, holders)
    subject = case.track(token, "REB")
    wallet = case.track(holders[0], "holder of REB")
    case.pass_round(token, holders, 10**18)
    yield
    case.send(case.world.deployer, token.address, call_data("RebaseToken", "rebase", 11 * 10**17))
    yield
    case.pass_round(token, holders, 10**18 + 1)
    case.send(case.world.deployer, token.address, call_data("RebaseToken", "rebase", 105 * 10**16 + 7))
    case.pass_round(token, holders[:2], 10**17 + 3)
    case.expect(subject, adjusted=frozenset(holders), is_lying=True, behaviour="Rebasing")
    case.expect(wallet, adjusted=frozenset({token.address}))


def _fee_on_transfer(case: Case, sink_is_known: bool) -> Iterator[None]:
    *holders, sink = case.wallets(4)
    symbol = "SINK" if sink_is_known else "BURN"
    arguments = (250, sink if sink_is_known else ZERO_ADDRESS)
    token = case.world.deploy_strange_token("FeeToken", symbol, 9, *arguments)
    case.world.distribute(token, 10**12, [*holders, sink])
    subject = case.track(token, symbol)
    wallet = case.track(holders[0], f"holder of {symbol}")
    if sink_is_known:
        case.world.transfer(token, sink, holders[0], 10**6)
    case.pass_round(token, holders, 10**10)
    yield
    case.pass_round(token, holders, 10**9 + 1)
    case.pass_round(token, holders, 33_333)
    adjusted = frozenset([*holders, *([sink] if sink_is_known else [])])
    case.expect(subject, adjusted=adjusted, behaviour="FeeOnTransfer")
    case.expect(wallet, adjusted=frozenset({token.address}))


def _silent_mint(case: Case) -> Iterator[None]:
    token = case.world.deploy_strange_token("LyingToken", "HUSH", 18)
    known, other, stranger, *resting = case.wallets(7)
    case.world.distribute(token, 10**18, [known, other, *resting])
    subject = case.track(token, "HUSH")
    wallet = case.track(known, "holder of HUSH")
    case.pass_round(token, [known, other, *resting], 10**17)
    yield
    for holder, is_counted in ((known, True), (stranger, True), (other, False)):
        call = call_data("LyingToken", "mint_silently", holder, 10**15, is_counted)
        case.world.submit(case.world.deployer, token.address, call)
    case.world.mine()
    yield
    case.send(case.world.deployer, token.address, call_data("LyingToken", "burn_silently", other, 10**14, True))
    case.expect(subject, adjusted=frozenset({known, other}), behaviour="NonConforming")
    case.expect(wallet, adjusted=frozenset({token.address}))


def _fake_event(case: Case) -> Iterator[None]:
    token = case.world.deploy_strange_token("LyingToken", "FAKE", 18)
    giver, taker, poor = case.wallets(3)
    case.world.distribute(token, 10**18, [giver, taker])
    subject = case.track(token, "FAKE")
    wallet = case.track(poor, "wallet in a fake event")
    case.pass_round(token, [giver, taker], 10**17)
    yield
    case.send(case.world.deployer, token.address, call_data("LyingToken", "emit_falsely", giver, taker, 5 * 10**20))
    case.send(case.world.deployer, token.address, call_data("LyingToken", "emit_falsely", poor, giver, 10**16))
    case.expect(subject, adjusted=frozenset({giver, taker, poor}), behaviour="NonConforming")
    case.expect(wallet, adjusted=frozenset({token.address}))


def _nested_calls(case: Case) -> Iterator[None]:
    payer, library = case.world.deploy("NestedPayer"), case.world.deploy("NestedPayer")
    template = case.world.deploy("Destructible")
    sender, paid, undone = case.wallets(3)
    salt = (1).to_bytes(32)
    born = case.world.call("NestedPayer", payer, "create_with_value", template, salt).lower()
    subjects = {
        address: case.track(address, f"wallet {role} by nested calls")
        for address, role in ((paid, "paid"), (undone, "not paid"), (born, "born"), (sender, "of the sender"))
    }
    deep = case.send(sender, payer, call_data("NestedPayer", "pay_deep", paid, 4), value=5 * _COIN)
    both = case.send(sender, payer, call_data("NestedPayer", "pay_one_of_two", undone, paid, 2), value=7 * _COIN + 1)
    yield
    delegated = case.send(sender, payer, call_data("NestedPayer", "pay_by_delegate", library, paid), value=_COIN)
    made = case.send(sender, payer, call_data("NestedPayer", "create_with_value", template, salt), value=3)
    case.send(sender, payer, call_data("NestedPayer", "pay_and_fail", paid, 1), value=_COIN)
    case.send(sender, payer, call_data("NestedPayer", "pay_one_of_two", paid, undone, 1), value=4)
    last = case.world.node.rpc("eth_getBlockByNumber", ["latest", False])
    case.expect(
        subjects[paid],
        internals=(
            (*deep, "In", 5 * _COIN, payer),
            (*both, "In", 7 * _COIN + 1 - (7 * _COIN + 1) // 2, payer),
            (*delegated, "In", _COIN, payer),
        ),
    )
    case.expect(subjects[undone], internals=((int(last["number"], 16), last["transactions"][0], "In", 2, payer),))
    case.expect(subjects[born], internals=((*made, "In", 3, payer),))
    case.expect(subjects[sender], internals=())


def _self_destruct(case: Case) -> Iterator[None]:
    contract = case.world.deploy("Destructible")
    owner, heir = case.wallets(2)
    subject = case.track(heir, "heir of a contract")
    case.send(owner, contract, value=9 * _COIN)
    yield
    ended = case.send(owner, contract, call_data("Destructible", "destroy", heir))
    case.expect(subject, internals=((*ended, "In", 9 * _COIN, contract),))


def _batch(case: Case) -> Iterator[None]:
    token = case.world.deploy_token("BULK", 18)
    case.track(token, "BULK")
    wallet = case.track(case.wallets(1)[0], "wallet beside a batch")
    case.world.distribute(token, 10**18, [wallet.address])
    # None of the receivers is a tracked wallet.
    data = call_data("TestToken", "emit_many", 10_000, 10**15, 1_000_000)
    case.send(case.world.deployer, token.address, data, gas=10**9)
    yield


def _two_tenants(case: Case) -> Iterator[None]:
    token = case.world.deploy_token("SHARED", 2)
    wallet, *others = case.wallets(5)
    holders = [wallet, *others]
    case.world.distribute(token, 10**6, holders)
    case.track(token, "SHARED")
    mine = case.track(wallet, "shared wallet")
    case.world.transfer_many(12, [token], wallets=holders, per_block=4)
    case.world.submit(wallet, others[0], value=_COIN)
    case.world.mine()
    theirs = [case.add(token, "SHARED", "beta"), case.add(wallet, "shared wallet", "beta")]
    yield
    # Tenant beta must not see the objects of acme.
    for subject in theirs:
        subject.enable()
    case.world.transfer_many(6, [token], wallets=holders[:2], per_block=2)
    theirs[0].disable()
    case.world.transfer_many(6, [token], wallets=holders[:4], per_block=3)
    yield
    theirs[0].enable()
    case.world.transfer_many(6, [token], wallets=holders[:3], per_block=3)
    case.world.submit(others[0], wallet, value=_COIN // 3)
    case.world.mine()
    stranger = case.tenant("beta").client
    case.require("another tenant's wallet is 404", lambda: _status_of(partial(stranger.get, mine.path)) == 404)


def _filled_gap(case: Case) -> Iterator[None]:
    token = case.world.deploy_token("GAP", 18)
    wallet, *others = case.wallets(4)
    holders = [wallet, *others]
    case.world.distribute(token, 10**6, holders)
    subjects = [case.track(token, "GAP"), case.track(wallet, "wallet with a gap")]
    case.pass_round(token, holders[:2], 10)
    for subject in subjects:
        subject.disable()
    first = case.world.node.head() + 1
    case.world.transfer_many(20, [token], wallets=holders, per_block=5)
    case.world.submit(wallet, others[0], value=_COIN // 9)
    last = case.world.mine()
    for subject in subjects:
        subject.enable()
    case.pass_round(token, holders[1:], 11)
    yield
    for subject in subjects:
        subject.request_history(f"block:{first}", f"block:{last}", None if subject.token else "full")
    case.pass_round(token, holders, 12)
    case.require(
        "nothing is missing any more",
        lambda: all(
            len(subject.tenant.client.get(f"{subject.path}/coverage")["collected"]) == 1 for subject in subjects
        ),
    )


def _history_from_creation(case: Case) -> Iterator[None]:
    token = case.world.deploy_token("WHOLE", 18)
    holders = case.wallets(6)
    case.world.distribute(token, 10**20, holders)
    case.world.transfer_many(40, [token], wallets=holders, per_block=4)
    subject = case.track(token, "WHOLE")
    never_tracked = case.add(case.world.deploy_token("PAST", 0), "PAST")
    assert never_tracked.token is not None
    case.world.distribute(never_tracked.token, 10, holders)
    case.world.transfer_many(20, [never_tracked.token], wallets=holders, per_block=5)
    case.pass_round(token, holders[:3], 10**10)
    yield
    never_tracked.request_history("creation", f"block:{case.world.node.head() - 2}")
    subject.request_history("creation", "now")
    # This request overlaps the one before and must collect nothing twice.
    subject.request_history("block:1", f"block:{case.world.node.head() - 3}")
    case.pass_round(token, holders, 10**11)
    client = subject.tenant.client
    case.require(
        "the balances are the supply",
        lambda: client.get(f"{subject.path}/cap-table")["unattributed"]["quantityRaw"] == "0",
    )


def _cancelled_history(case: Case) -> Iterator[None]:
    token = case.world.deploy_token("HALF", 18)
    holders = case.wallets(3)
    case.world.distribute(token, 10**20, holders)
    first = case.world.node.head() + 1
    for _ in range(30):
        case.pass_round(token, holders, 10**9)
        case.world.mine()
    last = case.world.node.head()
    subject = case.add(token, "HALF")
    yield
    request = subject.request_history(f"block:{first}", f"block:{last}")

    def is_beyond_the_middle(calls: Sequence[dict[str, Any]]) -> bool:
        asked = [call["params"][0] for call in calls if call["method"] == "eth_getLogs"]
        return any(
            token.address in str(criteria.get("address", "")).lower()
            and int(criteria.get("fromBlock", "0x0"), 16) > (first + last) // 2
            for criteria in asked
        )

    outage = HttpFault(status=503, when=is_beyond_the_middle)
    for proxy in case.system.proxies:
        proxy.inject(outage)
    yield
    client = subject.tenant.client
    for _ in range(_MOST_CYCLES):
        # A cycle's time may be over before it reaches this request.
        if client.get(request.path)["progress"]["done"] > 0:
            break
        case.system.cycle()
    case.require("half of it was collected by then", lambda: 0 < client.get(request.path)["progress"]["done"] < 60)
    client.delete(request.path)
    for proxy in case.system.proxies:
        proxy.withdraw(outage)
    case.require("it is cancelled", lambda: client.get(request.path)["status"] == "Cancelled")


def _native_history(case: Case) -> Iterator[None]:
    payer = case.world.deploy("NestedPayer")
    plain, full, other = case.wallets(3)
    first = case.world.node.head() + 1
    for wallet in (plain, full):
        for amount in range(1, 6):
            case.world.submit(other, wallet, value=amount * _COIN)
            case.world.submit(wallet, other, value=amount * _COIN // 3)
            case.world.mine()
            case.world.mine()
        case.send(other, payer, call_data("NestedPayer", "pay_deep", wallet, 2), value=_COIN)
    last = case.world.node.head()
    subjects = [case.track(plain, "wallet by balance only"), case.track(full, "wallet in full")]
    case.world.submit(plain, full, value=_COIN // 5)
    case.world.mine()
    yield
    for subject, mode in zip(subjects, ("balance-only", "full"), strict=True):
        subject.request_history(f"block:{first}", f"block:{last}", mode)


def _rewards_and_withdrawals(case: Case) -> Iterator[None]:
    proposer, withdrawer, busy = case.wallets(3)
    subjects = [case.track(proposer, "wallet of a proposer"), case.track(withdrawer, "wallet of withdrawals")]
    case.world.mine()
    for _ in range(2):
        case.world.node.rpc("anvil_setCoinbase", [proposer])
        case.send(busy, withdrawer, value=5)
        case.world.node.rpc("anvil_setCoinbase", [ZERO_ADDRESS])
        # Credit the withdrawer without a transaction before any reading of this block.
        block = case.world.mine()
        balance = case.world.native_balance(withdrawer, block)
        case.world.node.set_balance(withdrawer, balance + 32 * _COIN)
        case.world.mine()
        yield
    for subject in subjects:
        case.expect(subject, internals=())


def _failed_transaction(case: Case) -> Iterator[None]:
    payer = case.world.deploy("NestedPayer")
    token = case.world.deploy_token("FAIL", 18)
    wallet, other = case.wallets(2)
    subject = case.track(wallet, "wallet whose transactions fail")
    case.send(wallet, payer, call_data("NestedPayer", "pay_and_fail", other, 1), value=_COIN)
    case.send(wallet, token.address, call_data("TestToken", "transfer", other, 1))
    case.send(wallet, other, value=_COIN)
    yield
    case.expect(subject, internals=())


def _removal(case: Case) -> Iterator[None]:
    token = case.world.deploy_token("GONE", 18)
    holders = case.wallets(4)
    case.world.distribute(token, 10**6, holders)
    removed = case.track(token, "GONE")
    case.track(token, "GONE", "beta")
    case.pass_round(token, holders, 10)
    yield
    acme = case.tenant()
    acme.remove(removed)
    del case.expected[removed]
    case.pass_round(token, holders[:3], 11)
    again = case.add(token, "GONE, added anew")
    case.require("the removed token is 404", lambda: _status_of(partial(acme.client.get, removed.path)) == 404)
    case.require(
        "it is in no list",
        lambda: all(row["id"] != removed.id for page in acme.client.pages("/v1/tokens") for row in page["data"]),
    )
    yield
    again.enable()
    case.pass_round(token, holders[:2], 12)


def _reorganised(case: Case) -> Iterator[None]:
    token = case.world.deploy_token("FORK", 18)
    wallet, *others = case.wallets(5)
    holders = [wallet, *others]
    case.world.distribute(token, 10**12, holders)
    case.track(token, "FORK")
    case.track(wallet, "wallet on a fork")
    case.pass_round(token, holders, 5)
    yield
    depth = 30
    ancestor = case.world.node.head()
    for number in range(depth):
        case.world.submit(wallet, others[0], value=number)
        case.pass_round(token, holders[:3], 1_000 + number)
    case.system.collect()

    def replace() -> None:
        case.world.node.rpc("anvil_rollback", [case.world.node.head() - ancestor])
        for number in range(depth + 5):
            case.world.submit(others[1], wallet, value=100 + number)
            case.pass_round(token, holders[1:4], 2_000 + number)

    # Only a cycle with something to collect asks for logs.
    case.world.mine()
    case.system.proxies[0].inject(ActionFault(action=replace, times=1, methods=["eth_getLogs"]))
    case.require(
        "the reorganisation is recorded",
        lambda: case.system.service.query("select ancestor_block from raw.reorganisations") == [(ancestor,)],
    )


def _status_of(request: Callable[[], object]) -> int:
    try:
        request()
    except ApiError as error:
        return error.status
    return 200


MISFORTUNES = (
    Misfortune("mid-life start", "tracking starts among holders and transfers", _mid_life_start),
    Misfortune("toggled tracking", "three windows around transfers, and an empty one", _toggled),
    Misfortune("rebase", "all balances change, up and down", _rebasing),
    Misfortune("fee burnt", "2.5 % of each transfer vanish", partial(_fee_on_transfer, sink_is_known=False)),
    Misfortune("fee to a sink", "2.5 % go to a holder without an event", partial(_fee_on_transfer, sink_is_known=True)),
    Misfortune("silent mint", "holders, one of them unknown, get and lose without an event", _silent_mint),
    Misfortune("fake event", "Transfer events that move nothing", _fake_event),
    Misfortune("nested calls", "native value through calls, some undone", _nested_calls),
    Misfortune("self-destruct", "a contract leaves its value to a wallet", _self_destruct),
    Misfortune("batch", "10,000 transfers in one transaction", _batch),
    Misfortune("two tenants", "one token and one wallet, windows that differ", _two_tenants),
    Misfortune("filled gap", "a history request for what was disabled", _filled_gap),
    Misfortune("from creation", "history of a token's whole life, asked for twice", _history_from_creation),
    Misfortune("cancelled history", "a provider fails half-way, and the request is cancelled", _cancelled_history),
    Misfortune("native history", "one wallet by balances, one in full", _native_history),
    Misfortune("rewards", "a proposer's fees, and credits without transactions", _rewards_and_withdrawals),
    Misfortune("failed transaction", "transactions that only cost their fee", _failed_transaction),
    Misfortune("removal", "a token is removed and added anew", _removal),
    # This one must be the last: it only orphans its own blocks.
    Misfortune("reorganisation", "30 blocks replaced by 35 while a cycle runs", _reorganised),
)
