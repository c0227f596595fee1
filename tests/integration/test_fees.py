"""Fees by the receipts of the shipped networks: from a node's socket to the marts and the API, against its balances."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from litestar.testing import TestClient

from api.app import create_app
from control.settings import load_settings
from tests.chain.scripted_node import ScriptedNode, block_hash
from tests.integration.dbt_runner import LATER_CYCLE, build_over_nothing, run_dbt
from tests.integration.harness import LocalNetwork, Service
from warehouse.versions import publish

WALLET, OTHER = "0x" + "11" * 20, "0x" + "22" * 20
FIRST, HEAD = 10, 60
GAS, PRICE, BLOB_GAS, BLOB_PRICE, L1_FEE = 46_219, 1_250_003, 131_072, 7, 8_931_004_217
SCALAR, CONSTANT = 1_439_103_868, 3_000_001
OPENING = 10**18

ISTHMUS, JOVIAN, LATER = ("0x" + version + "000000fa00000006" for version in ("00", "01", "02"))
OPERATOR = {"operatorFeeScalar": hex(SCALAR), "operatorFeeConstant": hex(CONSTANT)}
FOOTPRINT = {"blobGasUsed": hex(40_000), "daFootprintGasScalar": hex(400)}
L1 = {"l1Fee": hex(L1_FEE), "l1GasPrice": hex(27), "l1GasUsed": hex(1_600)}


@dataclass(frozen=True)
class Sent:
    """A transaction of the wallet: its cost, and special fields of block, transaction and receipt."""

    cost: int
    type: int = 2
    receipt: dict[str, Any] = field(default_factory=dict)
    extra_data: str = "0x"
    is_told: bool = True  # True if receipt and block contain the whole cost


TRANSACTIONS = {
    "ethereum": Sent(GAS * PRICE),
    "ethereum, blobs": Sent(
        GAS * PRICE + BLOB_GAS * BLOB_PRICE, 3, {"blobGasUsed": hex(BLOB_GAS), "blobGasPrice": hex(BLOB_PRICE)}
    ),
    "ethereum, blobs without a price": Sent(
        GAS * PRICE + BLOB_GAS * BLOB_PRICE, 3, {"blobGasUsed": hex(BLOB_GAS)}, is_told=False
    ),
    "gnosis, no effective price": Sent(GAS * (PRICE - 1), 0, {"effectiveGasPrice": None}),
    "bnb, a validator's": Sent(0, 0, {"effectiveGasPrice": "0x0"}, "0xd883010603846765746888" + "00" * 90),
    "polygon, state sync": Sent(0, 0x7F, {"gasUsed": "0x0", "effectiveGasPrice": "0x0"}),
    "arbitrum": Sent(GAS * PRICE, 2, {"gasUsedForL1": hex(GAS // 3), "l1BlockNumber": "0x1"}),
    "arbitrum, internal": Sent(0, 0x6A, {"gasUsed": "0x0"}),
    "arbitrum, prepaid": Sent(0, 0x68),
    "arbitrum, submission": Sent(GAS * PRICE + 1_234_567, 0x69, is_told=False),
    "optimism, before Isthmus": Sent(GAS * PRICE + L1_FEE, 2, L1),
    "optimism, Isthmus": Sent(
        GAS * PRICE + L1_FEE + GAS * SCALAR // 10**6 + CONSTANT, 2, {**L1, **OPERATOR}, ISTHMUS
    ),
    "base, Jovian": Sent(GAS * PRICE + L1_FEE, 2, {**L1, **FOOTPRINT}, JOVIAN),
    "base, Jovian, with an operator": Sent(
        GAS * PRICE + L1_FEE + GAS * SCALAR * 100 + CONSTANT, 2, {**L1, **FOOTPRINT, **OPERATOR}, JOVIAN
    ),
    "base, Jovian by the receipt": Sent(
        GAS * PRICE + L1_FEE + GAS * SCALAR * 100 + CONSTANT, 2, {**L1, **FOOTPRINT, **OPERATOR}
    ),
    "base, a fork to come": Sent(
        GAS * PRICE + L1_FEE + 77_777, 2, {**L1, **FOOTPRINT, **OPERATOR}, LATER, is_told=False
    ),
    "base, a fork to come, without an operator": Sent(GAS * PRICE + L1_FEE, 2, {**L1, **FOOTPRINT}, LATER),
    "base, a deposit": Sent(0, 0x7E, {**L1, **OPERATOR}, JOVIAN),
}  # fmt: skip
BLOCKS = {name: FIRST + 2 * place for place, name in enumerate(TRANSACTIONS, 1)}
HASHES = {name: f"0x{block:032x}{0:032x}" for name, block in BLOCKS.items()}


def balance(block: int) -> int:
    """Return the wallet's balance after a block, as the node reports it."""
    return OPENING - sum(sent.cost for name, sent in TRANSACTIONS.items() if BLOCKS[name] <= block)


def made_node() -> ScriptedNode:
    node = ScriptedNode(
        head=HEAD,
        transactions={
            BLOCKS[name]: [
                {
                    "hash": HASHES[name],
                    "transactionIndex": "0x0",
                    "from": WALLET,
                    "to": OTHER,
                    "value": "0x0",
                    "gasPrice": hex(PRICE - 1),
                    "type": hex(sent.type),
                }
            ]
            for name, sent in TRANSACTIONS.items()
        },
        receipts={
            HASHES[name]: {
                "transactionHash": HASHES[name],
                "blockHash": block_hash(BLOCKS[name]),
                "gasUsed": hex(GAS),
                "effectiveGasPrice": hex(PRICE),
                "status": "0x1",
                "contractAddress": None,
                "type": hex(sent.type),
                **sent.receipt,
            }
            for name, sent in TRANSACTIONS.items()
        },
    )
    extra_data = {BLOCKS[name]: sent.extra_data for name, sent in TRANSACTIONS.items()}
    truly = node.handlers["eth_getBlockByNumber"]

    def block_by_number(params: list[Any]) -> Any:
        found = truly(params)
        if found is None:
            return None
        return {**found, "extraData": extra_data.get(int(found["number"], 16), "0x"), "logsBloom": "0x" + "00" * 256}

    def native_balance(params: list[Any]) -> str:
        at = params[1]
        number = int(at["blockHash"][2:58], 16) if isinstance(at, dict) else HEAD if at == "latest" else int(at, 16)
        return hex(balance(number) if params[0].lower() == WALLET else 0)

    node.handlers |= {"eth_getBlockByNumber": block_by_number, "eth_getBalance": native_balance}
    node.handlers["eth_getCode"] = lambda _: "0x"
    return node


@pytest.fixture(scope="module")
def activities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient[Any], str]]:
    """A client, and the path of the wallet, once everything is collected, built and published."""
    service = Service(tmp_path_factory.mktemp("fees"), [LocalNetwork("base", None, chain_id=1)])
    stores = build_over_nothing(service.settings.data_dir)
    with made_node() as node:
        service.point_at("base", node.url)
        tenant = service.tenant(network="base")
        opened = datetime.fromtimestamp(1_600_000_000 + 12 * FIRST, UTC)
        wallet = service.wallet(tenant, WALLET, tracked_from=opened, ledger="base")
        service.good_cycle("base")
    run_dbt(stores, *LATER_CYCLE)
    shutil.copyfile(stores.marts, service.settings.marts_path)
    publish(service.settings.marts_path, service.settings.serving_dir, 1)
    with TestClient(create_app(load_settings(service.variables))) as client:
        client.headers["Authorization"] = f"Bearer {service.bearer(tenant)}"
        yield client, f"/v1/wallets/{wallet.id}"
    service.close()


@pytest.mark.proof("every fee is exact or named as unknown")
def test_every_fee_is_exact_or_unknown(activities: tuple[TestClient[Any], str]) -> None:
    client, wallet = activities
    rows = client.get(f"{wallet}/activities", params={"limit": 100, "type": "Fee", "sort": "date"}).json()["data"]
    told = {row["transactionHash"]: (row["amountRaw"], row["amountStatus"], row["valueStatus"]) for row in rows}
    expected = {
        HASHES[name]: (str(sent.cost), "Known", "NoPair") if sent.is_told else (None, "UnknownFee", "UnknownAmount")
        for name, sent in TRANSACTIONS.items()
        if sent.cost
    }
    assert told == expected
    assert len(rows) == len(expected)
    assert {(row["amount"], row["value"]) for row in rows if row["amountRaw"] is None} == {(None, None)}


def test_an_unknown_fee_is_part_of_the_next_readings_difference(activities: tuple[TestClient[Any], str]) -> None:
    client, wallet = activities
    (position,) = client.get(f"{wallet}/balances").json()["current"]
    assert position["quantityRaw"] == str(balance(HEAD))
    rows = client.get(f"{wallet}/activities", params={"limit": 100, "type": "Internal"}).json()["data"]
    assert {row["direction"] for row in rows} == {"Out"}
    assert {row["amountStatus"] for row in rows} == {"Known"}
    unknown = sum(sent.cost for sent in TRANSACTIONS.values() if not sent.is_told)
    assert sum(int(row["amountRaw"]) for row in rows) == unknown


def test_a_file_names_the_status(activities: tuple[TestClient[Any], str]) -> None:
    client, wallet = activities
    text = client.get(f"{wallet}/activities", params={"type": "Fee"}, headers={"Accept": "text/csv"}).text
    names, *lines = (line.split(",") for line in text.splitlines())
    place, status = names.index("amountRaw"), names.index("amountStatus")
    assert {(line[place] == "", line[status]) for line in lines} == {(False, "Known"), (True, "UnknownFee")}
