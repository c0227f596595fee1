"""Isolation of tenants: every operation answers as if no other tenant existed."""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.chain.node import AnvilNode
from tests.integration.two_worlds import OPERATIONS, Tenant, Worlds


@pytest.fixture
def worlds(node: AnvilNode, tmp_path: Path) -> Iterator[Worlds]:
    with ExitStack() as stack:
        yield Worlds(node, tmp_path, stack)


def life_of_b(worlds: Worlds) -> Iterator[None]:
    """Have B make every kind of change, in turns; in the last one it removes its objects."""
    do, chain, node = worlds.b.do, worlds.chain, worlds.node
    do("put_ledger", "local", body={"name": "books", "displayName": "Books"})
    do("patch_ledger", "books", body={"description": "What is ours"})
    for symbol in ("GLD", "BTC", "USD", "EUR", "FUND"):
        do("create_priced_item", body={"symbol": symbol, "name": symbol.lower(), "class": "Other"})
    do("patch_priced_item", "GLD", body={"name": "Gold"})
    do("put_mapping_symbols", "GLD", body={"mappings": [{"priceSource": "src_kraken", "symbol": "BTC"}]})
    desk = do("create_price_source", body={"name": "Desk"})["id"]
    do("patch_price_source", desk, body={"name": "Fund desk"})
    do("enable_price_source", desk)
    supported = do("create_supported_pair", desk, body={"pricedAs": "FUND", "priceType": "NAV"})["id"]
    paid = {"pricedAs": "GLD", "priceType": "Trade", "priceSources": ["src_kraken", "src_coinbase"], "maxAge": "P1D"}
    gold_pair = do("create_pair", body=paid)["id"]
    gold = do("create_token", body={"ledger": "books", "symbol": "GOLD", "ledgerId": worlds.gold.address})["id"]
    do("put_token_priced_as", gold, body={"pricedAs": "GLD"})
    do("put_token_tracking", gold, body={"trackingStatus": "enabled", "history": "creation"})
    wallet = do("create_wallet", body={"ledger": "books", "ledgerId": chain.wallets[0]})["id"]
    do("put_wallet_tracking", wallet, body={"trackingStatus": "enabled"})
    yield

    hush = do("create_token", body={"ledger": "local", "symbol": "HUSH", "ledgerId": worlds.hush.address})["id"]
    do("put_token_tracking", hush, body={"trackingStatus": "enabled", "history": f"block:{node.head() - 80}"})
    do("patch_token", gold, body={"name": "Gold", "externalId": "g-1"})
    do("check_token_metadata", gold, body={"accept": True})
    fund = {"pricedAs": "FUND", "priceType": "NAV", "priceSources": [desk], "maxAge": None, "maxJump": 25}
    fund_pair = do("create_pair", body=fund)["id"]
    entered = [("100", 9), ("1000", 6), ("3000", 3)]
    prices = [{"price": price, "effectiveFrom": worlds.moment(node.head() - ago)} for price, ago in entered]
    do("create_manual_prices", desk, supported, body=prices)
    do("put_token_priced_as", hush, body={"pricedAs": "FUND"})
    past = {"from": worlds.moment(node.head() - 40), "to": worlds.moment(node.head()), "windowSize": "hour"}
    do("request_price_discovery", gold_pair, body=past)
    first = node.head() - 60
    do("request_wallet_history", wallet, body={"from": f"block:{first}", "native": "full"})
    do("put_wallet_tracking", wallet, body={"trackingStatus": "disabled"})
    yield

    do("put_wallet_tracking", wallet, body={"trackingStatus": "enabled"})
    other = do("create_wallet", body={"ledger": "local", "ledgerId": chain.wallets[2]})["id"]
    do("patch_wallet", other, body={"name": "Other"})
    do("put_wallet_tracking", other, body={"trackingStatus": "enabled", "history": f"block:{node.head() - 30}"})
    cancelled = do("request_token_history", hush, body={"from": "creation"})["id"]
    do("cancel_token_history_request", hush, cancelled)
    cancelled = do("request_wallet_history", other, body={"from": f"block:{node.head() - 50}"})["id"]
    do("cancel_wallet_history_request", other, cancelled)
    do("attest_token", gold, body={"asOf": "block:12"})
    cancelled = do("attest_token", hush, body={"asOf": f"block:{node.head() - 40}"})["id"]
    do("cancel_token_attestation", hush, cancelled)
    cancelled = do("request_price_discovery", gold_pair, body={**past, "windowSize": "minute"})["id"]
    do("cancel_price_discovery", gold_pair, cancelled)
    do("patch_pair", gold_pair, body={"allowInverse": True, "maxDeviation": 50})
    crossed = {"pricedAs": "BTC", "pricedIn": "EUR", "bridge": "USD", "allowInverse": True}
    crossed_pair = do("create_pair", body={**paid, **crossed, "priceSources": ["src_kraken"]})["id"]
    do("disable_price_source", "src_coinbase")
    yield

    do("enable_price_source", "src_coinbase")
    stopped = [row["id"] for row in worlds.b.get(f"/v2/pairs/{fund_pair}/prices/quarantined", {}).body["data"]]
    do("accept_quarantined_price", fund_pair, stopped[0])
    do("reject_quarantined_price", fund_pair, stopped[1])
    do("attest_wallet", wallet, body={"asOf": f"block:{first + 1}"})
    cancelled = do("attest_wallet", wallet, body={"asOf": f"block:{first + 3}"})["id"]
    do("cancel_wallet_attestation", wallet, cancelled)
    do("put_embed_origins", body={"embedOrigins": ["https://portal.example"]})
    yield

    _, index = worlds.link("link_index")
    do("link_from_index", body={"type": "cap-table", "id": gold}, bearer=index)
    for report, token in worlds.links():
        do("renew_token", bearer=token)
        do(f"save_{report.replace('-', '_')}", form={"token": token})
        if report == "cap-table":
            do("make_guest_token", bearer=token)
    do("revoke_reports")
    yield

    do("remove_token_priced_as", hush)
    for pair in (fund_pair, crossed_pair):
        do("remove_pair", pair)
    do("remove_supported_pair", desk, supported)
    do("remove_price_source", desk)
    do("remove_priced_item", "FUND")
    do("remove_token", hush)
    do("remove_wallet", other)
    do("put_ledger", "local", body={"name": "spare"})
    do("remove_ledger", "spare")
    yield


class _A:
    """Random actions of tenant A, mostly with the same tokens, wallets and pairs as B."""

    def __init__(self, worlds: Worlds, draw: random.Random) -> None:
        self._worlds = worlds
        self._draw = draw
        self._subjects: list[tuple[str, str]] = []
        self._pairs: list[str] = []
        self._made = 0

    def begin(self) -> None:
        """Track a token for the whole test, so that A has attestations."""
        made = self._do("create_token", body={"ledger": "local", "symbol": "A", "ledgerId": self._worlds.gold.address})
        self._do("put_token_tracking", made["id"], body={"trackingStatus": "enabled", "history": "creation"})

    def act(self) -> None:
        """Do a random action, which the API may refuse."""
        acts: list[Callable[[], Any]] = [
            self._add, self._add, self._add, self._track, self._track, self._ask_history, self._ask_history,
            self._attest, self._price, self._price, self._discover, self._enter, self._switch, self._remove,
        ]  # fmt: skip
        self._draw.choice(acts)()

    @property
    def _do(self) -> Callable[..., Any]:
        return self._worlds.a.do

    def _block(self) -> str:
        return f"block:{self._draw.randrange(5, self._worlds.node.head() + 1)}"

    def _add(self) -> None:
        if self._draw.random() < 0.5:
            token = self._draw.choice(self._worlds.tokens)
            made = self._do("create_token", body={"ledger": "local", "symbol": "A", "ledgerId": token.address})
            kind = "token"
        else:
            where = self._draw.choice(self._worlds.chain.wallets)
            made = self._do("create_wallet", body={"ledger": "local", "ledgerId": where})
            kind = "wallet"
        if "id" in made:
            self._subjects.append((kind, made["id"]))
            history = {"history": self._block()} if self._draw.random() < 0.5 else {}
            self._do(f"put_{kind}_tracking", made["id"], body={"trackingStatus": "enabled", **history})

    def _track(self) -> None:
        for kind, name in self._draw.sample(self._subjects, min(1, len(self._subjects))):
            status = self._draw.choice(["enabled", "disabled"])
            self._do(f"put_{kind}_tracking", name, body={"trackingStatus": status})

    def _ask_history(self) -> None:
        for kind, name in self._draw.sample(self._subjects, min(1, len(self._subjects))):
            native = {"native": self._draw.choice(["full", "balance-only"])} if kind == "wallet" else {}
            start = self._draw.choice([self._block(), "creation"])
            made = self._do(f"request_{kind}_history", name, body={"from": start, **native})
            if "id" in made and self._draw.random() < 0.2:
                self._do(f"cancel_{kind}_history_request", name, made["id"])

    def _attest(self) -> None:
        for kind, name in self._draw.sample(self._subjects, min(1, len(self._subjects))):
            self._do(f"attest_{kind}", name, body={"asOf": self._block()})

    def _price(self) -> None:
        priced_as, priced_in = self._draw.choice(["BTC", "ETH", "GLD"]), self._draw.choice(["USD", "EUR"])
        for symbol in (priced_as, priced_in):
            self._do("create_priced_item", body={"symbol": symbol, "name": symbol, "class": "Other"})
        sources = self._draw.sample(["src_kraken", "src_coinbase", "src_ecb"], self._draw.randrange(1, 3))
        rules = {"priceType": self._draw.choice(["Trade", "Ask", "Market"]), "priceSources": sources, "maxAge": None}
        made = self._do("create_pair", body={"pricedAs": priced_as, "pricedIn": priced_in, **rules})
        if "id" in made:
            self._pairs.append(made["id"])
            for kind, name in self._subjects:
                if kind == "token":
                    self._do("put_token_priced_as", name, body={"pricedAs": priced_as, "pairId": made["id"]})

    def _discover(self) -> None:
        for pair in self._draw.sample(self._pairs, min(1, len(self._pairs))):
            head = self._worlds.node.head()
            moments = {"from": self._worlds.moment(head - 50), "to": self._worlds.moment(head)}
            self._do("request_price_discovery", pair, body={**moments, "windowSize": "hour"})

    def _enter(self) -> None:
        self._made += 1
        desk = self._do("create_price_source", body={"name": f"Desk {self._made}"})["id"]
        self._do("create_priced_item", body={"symbol": "FUND", "name": "Fund", "class": "Fund"})
        made = self._do("create_supported_pair", desk, body={"pricedAs": "FUND", "priceType": "NAV"})
        if "id" in made:
            self._do("create_manual_prices", desk, made["id"], body={"price": "7", "effectiveFrom": "2023-01-01"})

    def _switch(self) -> None:
        self._do(self._draw.choice(["disable_price_source", "enable_price_source"]), "src_kraken")

    def _remove(self) -> None:
        for kind, name in self._draw.sample(self._subjects, min(1, len(self._subjects))):
            self._subjects.remove((kind, name))
            self._do(f"remove_{kind}", name)


@pytest.mark.release
@pytest.mark.parametrize("seed", range(2))
def test_answers_beside_an_active_tenant_equal_answers_alone(worlds: Worlds, seed: int) -> None:
    draw = random.Random(seed)
    a = _A(worlds, draw)
    a.begin()
    most = 3 if seed == 0 else 30
    for turn, _ in enumerate(life_of_b(worlds)):
        worlds.traffic(draw.randrange(1, 6))
        if draw.random() < 0.4:
            worlds.mint_silently(draw.choice(worlds.chain.wallets))
        for _ in range(draw.randrange(1, 6)):
            a.act()
        # The next cycle makes up for failures.
        if draw.random() < 0.4:
            worlds.cycle(fails=[draw.choice(["node", "kraken"])])
            worlds.traffic(2)
        worlds.cycle()
        # B's actions in turns 2 and 3 need published data: coverage, and prices in quarantine.
        if turn > 0 and (turn < 3 or seed > 0):
            worlds.publish()
        if turn in (3, 5) or (turn > 0 and seed > 0):
            # Another cycle completes operations that waited for the publication.
            worlds.cycle()
            worlds.publish()
            # A separate source of randomness: A's actions must not depend on the number of operations.
            worlds.read_everything(random.Random(f"{seed} {turn}"), most)
    # The world has no wallet of keys.
    assert worlds.b.called == OPERATIONS.keys() - {"read_wallet_keys"}, "an operation has no caller"
    if seed == 0:
        # Ends of days were attested automatically, for A and for B.
        ended = "select count(*) from raw.attestations where period_end is not null and attested_at is not null"
        ((beside,),), ((alone,),) = (service.query(ended) for service in worlds.services)
        assert beside > alone > 0


@pytest.mark.proof("readings made for one tenant are not shown to another")
@pytest.mark.ci
def test_readings_for_one_tenant_are_not_shown_to_another(worlds: Worlds) -> None:
    """B's reconciliations, behaviours and balances do not depend on A's readings at the same blocks."""
    start, chain = worlds.traffic(6), worlds.chain
    worlds.traffic(9)
    for token in (worlds.gold, worlds.hush):
        track(worlds.b, "token", token.address, start)
    track(worlds.b, "wallet", chain.wallets[0], start)
    worlds.cycle()
    worlds.publish()
    # A tracks the same tokens and another one from other blocks on, so its ranges begin with readings.
    worlds.mint_silently(chain.wallets[3])
    for token in worlds.tokens:
        track(worlds.a, "token", token.address, start + 2)
    worlds.cycle()
    worlds.traffic(1)
    for wallet in chain.wallets[:5]:
        track(worlds.a, "wallet", wallet, start + 4)
    worlds.cycle()
    # Only A's token moves.
    chain.transfer(worlds.coin, chain.wallets[1], chain.wallets[2], 5)
    chain.mine()
    worlds.cycle()
    worlds.publish()
    worlds.read_everything(random.Random(1), 100)


@pytest.mark.proof("metadata of a contract is shown as it was read for the tenant")
@pytest.mark.ci
def test_metadata_is_shown_as_read_for_the_tenant(worlds: Worlds) -> None:
    """The contract returns no decimals when B's wallet first receives the token, but does when A adds it."""
    node, chain, hush = worlds.node, worlds.chain, worlds.hush
    wallet = track(worlds.b, "wallet", chain.wallets[0])
    chain.transfer(hush, chain.wallets[1], chain.wallets[0], 5)
    chain.mine()
    code = node.rpc("eth_getCode", [hush.address, "latest"])
    node.set_code(hush.address, "0x00")
    chain.mine()
    worlds.cycle()
    node.set_code(hush.address, code)
    track(worlds.a, "token", hush.address)
    chain.mine()
    worlds.cycle()
    worlds.publish()
    worlds.read_everything(random.Random(1), 5)
    rows = worlds.b.get(f"/v1/wallets/{wallet}/activities", {}).body["data"]
    assert "5" in [row["amountRaw"] for row in rows]
    assert "0.000005" not in [row["amount"] for row in rows]
    said = "select decimals from raw.token_metadata where token_address = ? order by tenant_id"
    assert worlds.beside.query(said, [hush.address]) == [(6,), (None,)]


def track(tenant: Tenant, kind: str, where: str, block: int | None = None) -> str:
    """Have a tenant track a token or wallet from a block or from now on; return its id."""
    symbol = {"symbol": "TKN"} if kind == "token" else {}
    made: str = tenant.do(f"create_{kind}", body={"ledger": "local", "ledgerId": where, **symbol})["id"]
    history = {} if block is None else {"history": f"block:{block}"}
    tenant.do(f"put_{kind}_tracking", made, body={"trackingStatus": "enabled", **history})
    return made
