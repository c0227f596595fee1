"""The data folder of a release, as it leaves one, and what its API answered over it: what later releases must upgrade.

Made once per release, at its tag: `python -m tests.integration.release_folder` writes `releases/<version>.tar.xz`.
"""

import json
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from embit import bip32
from litestar.testing import TestClient

from api.app import create_app
from control.access import Principal
from control.networks.data_sets import DataSet
from control.settings import load_settings
from pipelines.raw.database import open_warehouse
from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.chain.utxo_node import UtxoNode
from tests.chain.utxo_world import UtxoWorld
from tests.chain.world import World
from tests.datasets.chain_files import write_aws
from tests.integration.harness import LocalNetwork, LocalUtxoNetwork, Service

# The shipped definition of a local node.
_OUTPUTS = "local-utxo"
RELEASES = Path(__file__).parent / "releases"
# Fields that belong to the release, or need the missing node.
_OF_THE_RELEASE = frozenset({"dataVersion", "estimatedEnd", "network"})


def answers(data_dir: Path, key: str, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the API's answers over a data folder by path: numbers, texts and times of the chain and of prices."""
    settings = load_settings({"LEDGERMART_DATA_DIR": str(data_dir), **(variables or {})})
    with TestClient(create_app(settings)) as client:
        client.headers["Authorization"] = f"Bearer {key}"

        def get(path: str) -> Any:
            answer = client.get(path, params={"limit": 1000} if path.endswith(("activities", "cap-table")) else {})
            assert answer.status_code in (200, 409), f"{path}: {answer.text}"
            return _facts(answer.json()) if answer.is_success else answer.json()["code"]

        return {path: get(path) for path in _paths(get)}


def _paths(get: Any) -> Iterator[str]:
    for kind, parts in (
        ("tokens", ("", "/cap-table", "/activities", "/coverage", "/market-capitalization", "/price-history")),
        ("wallets", ("", "/balances", "/activities", "/coverage", "/value-history")),
    ):
        for subject in get(f"/v1/{kind}")["data"]:
            for part in parts:
                yield f"/v1/{kind}/{subject['id']}{part}"
    for pair in get("/v2/pairs")["data"]:
        yield f"/v2/pairs/{pair['id']}"


def _facts(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: _facts(value) for name, value in answer.items() if name not in _OF_THE_RELEASE}
    return [_facts(value) for value in answer] if isinstance(answer, list) else answer


def main() -> None:
    """Run a small service over a chain, and keep its data folder."""
    with tempfile.TemporaryDirectory() as name, AnvilNode(genesis_time=GENESIS_TIME) as node, UtxoNode() as outputs:
        files = Path(name) / "files"
        local = LocalNetwork(
            "local", node.url, data_sets=[DataSet("past", "aws", f"{files}/logs/date={{date}}/*.parquet")]
        )
        service = Service(Path(name), [local, LocalUtxoNetwork(_OUTPUTS, outputs.url)])
        key = _use(service, node, outputs, files)
        with open_warehouse(service.settings.warehouse_path) as connection:
            # Another release's project is another one, also before this one has changed.
            connection.execute("update raw.transforms set project_fingerprint = 'of a release'")
        service.close()
        settings = service.settings
        data_dir = settings.data_dir
        expected = Path(name) / "answers.json"
        expected.write_text(json.dumps({"key": key, "answers": answers(data_dir, key)}, indent=1))
        RELEASES.mkdir(exist_ok=True)
        with tarfile.open(RELEASES / f"{version('ledgermart')}.tar.xz", "w:xz") as archive:
            archive.add(expected, "answers.json")
            kept = (settings.warehouse_path, settings.marts_path, settings.serving_dir, data_dir / "control.db")
            for file in kept:
                archive.add(file, f"data/{file.relative_to(data_dir)}")


def _pay(service: Service, tenant: Principal, node: UtxoNode) -> None:
    """Track a wallet of outputs and a wallet of keys over payments from and to them."""
    world = UtxoWorld(node)
    world.mature(20)
    wallet, other = world.address(), world.address("p2pkh")
    keys = bip32.HDKey.from_seed(b"release" * 5, version=bytes.fromhex("04358394"))
    world.pay({wallet: 10**8})
    opened = world.mine()
    service.ledger(tenant, _OUTPUTS)
    since = datetime.fromtimestamp(node.rpc("getblockheader", node.block_hash(opened))["mediantime"], UTC)
    for address in (wallet, f"wpkh({keys.to_public().to_base58()}/<0;1>/*)"):
        service.wallet(tenant, address, tracked_from=since, ledger=_OUTPUTS)
    for number in range(1, 5):
        world.pay({other: 10**6 * number}, senders=[wallet])
        world.pay({wallet: 10**7, world.take_key(keys.derive([0, number]).key): 10**6}, senders=[world.miner])
        world.mine()


def _use(service: Service, node: AnvilNode, outputs: UtxoNode, files: Path) -> str:
    """Track tokens and wallets of both families, with prices, over some blocks; return an API key."""
    world = World(node, wallet_count=8, gas_price=10**9)
    world.place_multicall()
    tenant = service.tenant()
    old = world.deploy_token("COPPER", 6)
    world.distribute(old, 1_000)
    # The node calls a block final after 64 others.
    last = node.head()
    for _ in range(70):
        world.mine()
    write_aws(node, files, tables=["logs"])
    service.ask_history(tenant, service.token(tenant, old.address), "creation", f"block:{last}")
    coin, gold = world.deploy_token("COIN", 6), world.deploy_token("GOLD", 18)
    start = datetime.fromtimestamp(node.block_time(node.head()), UTC) + timedelta(seconds=1)
    for token in (coin, gold):
        service.token(tenant, token.address, tracked_from=start)
    for wallet in world.wallets[:2]:
        service.wallet(tenant, wallet, tracked_from=start)
    for token in (coin, gold):
        world.distribute(token, 1_000_000)
    for _ in range(5):
        world.transfer_many(8, [coin, gold], per_block=4)
        world.submit(*world.wallets[:2], value=10**18)
        world.mine(node.block_time(node.head()) + 86_400)
    _pay(service, tenant, outputs)
    key = service.bearer(tenant)
    _cycle(service)
    with TestClient(create_app(service.settings)) as client:
        client.headers["Authorization"] = f"Bearer {key}"

        def post(path: str, body: Any, method: str = "POST") -> Any:
            answer = client.request(method, path, json=body)
            assert answer.is_success, answer.text
            return answer.json()

        for symbol in ("USD", "GOLD"):
            post("/v1/priced-items", {"symbol": symbol, "name": symbol, "class": "Other"})
        desk = post("/v2/price-sources", {"name": "Desk"})["id"]
        post(f"/v2/price-sources/{desk}/enable", None, "PATCH")
        nav = {"pricedAs": "GOLD", "priceType": "NAV"}
        pair = post(f"/v2/price-sources/{desk}/pairs", nav)["id"]
        post("/v2/pairs", nav | {"priceSources": [desk], "maxAge": None})
        day = (start + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
        post(f"/v2/price-sources/{desk}/pairs/{pair}/prices", [{"price": "2.5", "effectiveFrom": day}])
        for token in client.get("/v1/tokens").json()["data"]:
            if token["ledgerId"].lower() == gold.address:
                post(f"/v1/tokens/{token['id']}/priced-as", {"pricedAs": "GOLD"}, "PUT")
    world.transfer(gold, world.wallets[0], world.wallets[1], 5)
    world.mine()
    _cycle(service)
    return key


def _cycle(service: Service) -> None:
    done = service.ledgermart("cycle")
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    main()
