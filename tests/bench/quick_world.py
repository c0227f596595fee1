"""World of the counts: a scripted node with one token, and a service that tracks the token and one of its holders."""

import os
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

from litestar import Litestar
from litestar.testing import TestClient
from sqlalchemy import update
from sqlalchemy.orm import Session

from api.app import create_app
from control.access import Principal
from control.inputs import ExactNumber
from control.models import ApiKey
from control.pricing import items, links, manual_prices, pairs, sources, supported_pairs
from control.pricing.items import PricedItemCreate
from control.pricing.links import PricedAsPut
from control.pricing.manual_prices import ManualPriceCreate
from control.pricing.pairs import PairCreate
from control.pricing.price_types import PriceType
from control.pricing.sources import PriceSourceCreate
from control.pricing.supported_pairs import SupportedPairCreate
from control.subjects import SubjectRow
from tests.chain.scripted_node import NodeError, ScriptedNode, transfer_log, word
from tests.integration.harness import LocalNetwork, Service
from tests.integration.warm_processes import console_command

GENESIS = datetime.fromtimestamp(1_600_000_000, UTC)
_TOKEN = "0x" + "aa" * 20
_NOBODY, _TREASURY, _WALLET = 0, 1, 2
_HOLDERS = 300
# The use of a key is recorded once a minute. A last use in the future prevents that.
_LAST_USE = datetime(2100, 1, 1, tzinfo=UTC)


def address_of(number: int) -> str:
    """Return the address of a holder."""
    return f"0x{number:040x}"


class TokenNode(ScriptedNode):
    """A chain with one token; its treasury pays the other holders in turn."""

    def __init__(self) -> None:
        super().__init__(head=0, chain_id=31337)
        # Block, sender, recipient and amount.
        self._moves = [(1, _NOBODY, _TREASURY, 10**12)]
        self.handlers |= {
            "eth_call": self._call,
            "eth_getBalance": lambda _: hex(10**18),
            "eth_getCode": lambda params: "0x60" if params[0] == _TOKEN else "0x",
        }

    def mine(self, blocks: int, transfers: int) -> None:
        """Add blocks with this number of transfers in each."""
        first, count = self.head + 1, len(self._moves)
        self._moves += [
            (first + number // transfers, _TREASURY, _WALLET + (count + number) % _HOLDERS, count + number)
            for number in range(blocks * transfers)
        ]
        self.logs = [
            transfer_log(block, index, amount, token=_TOKEN, sender=address_of(sender), recipient=address_of(recipient))
            for index, (block, sender, recipient, amount) in enumerate(self._moves)
        ]
        self.head += blocks

    def _number(self, block: Any) -> int:
        if isinstance(block, dict):
            return int(block["blockHash"][2:58], 16)
        return self.head if block == "latest" else int(block, 16)

    def _block(self, params: list[Any]) -> Any:
        found = super()._block(params)
        return found and {**found, "logsBloom": "0x" + "ff" * 256}

    def _logs(self, params: list[Any]) -> Any:
        if "blockHash" not in params[0]:
            return super()._logs(params)
        number = hex(self._number(params[0]))
        return super()._logs([{**params[0], "fromBlock": number, "toBlock": number}])

    def _call(self, params: list[Any]) -> str:
        data, block = params[0]["data"], self._number(params[1])
        moves = [move for move in self._moves if move[0] <= block]
        match data[:10]:
            case "0x70a08231":  # balanceOf
                holder = int(data[10:], 16)
                return "0x" + word(sum(((to == holder) - (by == holder)) * amount for _, by, to, amount in moves))
            case "0x18160ddd":  # totalSupply
                return "0x" + word(sum(amount for _, by, _, amount in moves if by == _NOBODY))
            case "0x313ce567":  # decimals
                return "0x" + word(6)
            case "0x95d89b41" | "0x06fdde03":  # symbol, name
                return "0x" + word(32) + word(3) + b"TKN".hex().ljust(64, "0")
        raise NodeError(3, "execution reverted")


class QuickWorld:
    """A service over the node, all in this process."""

    def __init__(self, folder: Path, node: TokenNode) -> None:
        self.node = node
        # A slow machine needs more time for the network, and must count the same.
        settings = {"LEDGERMART_NETWORK_SECONDS": "86400"}
        self.service = Service(folder, [LocalNetwork("local", node.url)], settings)
        os.environ.update(self.service.variables)
        tenant = self.service.tenant()
        token = self.service.token(tenant, _TOKEN, tracked_from=GENESIS)
        self.token = token.id
        self.wallet = self.service.wallet(tenant, address_of(_WALLET), tracked_from=GENESIS).id
        self._key = self.service.bearer(tenant)
        with self.service.store.write() as session:
            session.execute(update(ApiKey).values(last_used_at=_LAST_USE))
            _enter_price(session, tenant, token)
        self._app = create_app(self.service.settings)

    def client(self, key: str | None = None) -> TestClient[Litestar]:
        """Return a client that starts the application, with empty caches; default: with the API key."""
        client = TestClient(self._app)
        client.headers["Authorization"] = f"Bearer {key or self._key}"
        return client

    def cycle(self) -> None:
        """Run `ledgermart cycle` in this process."""
        with redirect_stdout(StringIO()) as printed, redirect_stderr(printed):
            try:
                console_command("cycle")
            except SystemExit as ended:
                if ended.code:
                    log = self.service.settings.data_dir / "logs" / "cycle.log"
                    raise RuntimeError(printed.getvalue() + log.read_text()[-8000:]) from ended


def _enter_price(session: Session, tenant: Principal, token: SubjectRow) -> None:
    """Link the token to a manual price."""
    for symbol in ("TKN", "USD"):
        items.create(session, tenant, PricedItemCreate(symbol=symbol, name=symbol, class_="Other"))
    desk = sources.create(session, tenant, PriceSourceCreate(name="Desk")).id
    sources.set_enabled(session, tenant, {}, desk, enabled=True)
    supported = SupportedPairCreate(priced_as="TKN", priced_in="USD", price_type="NAV")
    supported_id = supported_pairs.create(session, tenant, {}, desk, supported).id
    price = ManualPriceCreate(price=ExactNumber(2), effective_from="2020-01-01")
    manual_prices.enter(session, tenant, {}, desk, supported_id, manual_prices.check_prices([price], is_bulk=False))
    pair = PairCreate(priced_as="TKN", priced_in="USD", price_type=PriceType.NAV, price_sources=[desk], max_age=None)
    pairs.create(session, tenant, {}, lambda _: {}, pair)
    links.link(session, tenant, token, PricedAsPut(priced_as="TKN"))
