"""Workload of the benchmarks: a chain with many transfers, and a tenant that tracks a part of it."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from control import access, ledgers, subjects, tokens, wallets
from control.ledgers import LedgerPut
from control.networks.definitions import load_networks
from control.settings import load_settings
from control.store import open_store
from control.subjects import TokenCreate, WalletCreate
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.e2e.service import Service

BLOCK_SECONDS = 12
TENANT = "bench"
# Time for contracts, first balances and a margin before the requested blocks.
_SET_UP_SECONDS = 100 * BLOCK_SECONDS


@contextmanager
def running_world(blocks: int = 0, chain_id: int = 31_337) -> Iterator[World]:
    """Run a node that only has Multicall3; its genesis is early enough for `blocks` blocks in the past."""
    genesis = int(time.time()) - blocks * BLOCK_SECONDS - _SET_UP_SECONDS
    with AnvilNode(genesis_time=genesis, chain_id=chain_id) as node:
        world = World(node, wallet_count=0, block_seconds=BLOCK_SECONDS)
        world.place_multicall()
        yield world


def instant_of(node: AnvilNode, block_number: int) -> datetime:
    """Return a block's time in UTC."""
    return datetime.fromtimestamp(node.block_time(block_number), UTC)


def track(
    service: Service,
    key: str,
    network: str,
    tracked_tokens: Mapping[Token, datetime],
    tracked_wallets: Mapping[str, datetime] | None = None,
) -> dict[str, str]:
    """Track tokens and wallets of one network as of an instant of the past, through the rules of the control store.

    The API opens windows now and not before; the rules under it take the moment, as for tests.

    Args:
        key: the tenant's admin key, from `init`.
        tracked_tokens, tracked_wallets: with the start of their window.

    Returns:
        Public ids by address.
    """
    settings = load_settings(service.environment)
    store = open_store(settings)
    try:
        with store.write() as session:
            principal = access.authenticate(session, key)
            networks = load_networks(settings.networks_file, service.environment)
            ledgers.put(session, principal, networks, network, LedgerPut(name=network))
            ids = {}
            for token, opened_at in tracked_tokens.items():
                row = tokens.create(
                    session,
                    principal,
                    networks,
                    TokenCreate(ledger=network, symbol=str(token.symbol), ledger_id=token.address),
                )
                subjects.set_tracking(session, principal, row, True, now=opened_at)
                ids[token.address] = row.id
            for address, opened_at in (tracked_wallets or {}).items():
                row = wallets.create(session, principal, networks, WalletCreate(ledger=network, ledger_id=address))
                subjects.set_tracking(session, principal, row, True, now=opened_at)
                ids[address] = row.id
            return ids
    finally:
        store.close()


def run_cycle(service: Service) -> dict[str, Any]:
    """Run `ledgermart cycle` and return its JSON output."""
    answer: dict[str, Any] = json.loads(service.run("cycle", "--json"))
    return answer


def new_service(
    folder: Path, rpc_url: str, extra: Mapping[str, str] | None = None, tenant: str = TENANT
) -> tuple[Service, str]:
    """Create a service in a new data folder; return it and its tenant's admin key."""
    service = Service(folder, rpc_url, extra)
    return service, service.init(tenant)
