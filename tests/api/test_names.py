"""Rows show the tenant's own names of addresses, and no names of other tenants."""

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_LEDGER, EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from control.networks.evm import EvmAddressCodec
from tests.api.world import HOLDERS, World

TOKEN, WALLET = f"/v1/tokens/{EXAMPLE_TOKEN_ID}", f"/v1/wallets/{EXAMPLE_WALLET_ID}"
NAMES = {"h1": "Treasury", "h2": "Custodian"}


@pytest.fixture
def client(world: World) -> Iterator[TestClient[Any]]:
    """The API of a tenant with names for its wallet and one counterparty; another tenant uses other names."""
    with world.client() as client, world.client("foreign") as foreign:
        for caller, suffix in ((client, ""), (foreign, " of others")):
            for who, name in NAMES.items():
                body = {"ledger": EXAMPLE_LEDGER, "ledgerId": HOLDERS[who], "name": name + suffix}
                if caller.post("/v1/wallets", json=body).status_code == 409:
                    (known,) = caller.get("/v1/wallets", params={"ledgerId": HOLDERS[who]}).json()["data"]
                    assert caller.patch(f"/v1/wallets/{known['id']}", json={"name": name + suffix}).status_code == 200
        yield client


def named(address: str | None) -> str | None:
    """Return the tenant's name of a stored address."""
    return {HOLDERS[who]: name for who, name in NAMES.items()}.get((address or "").lower())


def rows_of(client: TestClient[Any], path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = client.get(path).json()["data"]
    return rows


def test_holders(client: TestClient[Any]) -> None:
    wallets = {one["ledgerId"].lower(): one["id"] for one in rows_of(client, "/v1/wallets")}
    for query in ("", "?asOf=block:150", "?sort=wallet&explain=true"):
        rows = rows_of(client, f"{TOKEN}/cap-table{query}")
        assert {row["name"] for row in rows} >= {"Custodian", None}
        assert [row["name"] for row in rows] == [named(row["wallet"]) for row in rows]
        assert [row["walletId"] for row in rows] == [wallets.get(row["wallet"].lower()) for row in rows]


def test_holders_that_changed(client: TestClient[Any]) -> None:
    rows = rows_of(client, f"{TOKEN}/cap-table/changes?from=block:260")
    assert {row["name"] for row in rows} >= {"Treasury", None}
    assert [row["name"] for row in rows] == [named(row["wallet"]) for row in rows]


def test_sides_of_activities(client: TestClient[Any]) -> None:
    rows = rows_of(client, f"{TOKEN}/activities")
    assert {(row["fromName"], row["toName"]) for row in rows} >= {("Treasury", "Custodian"), ("Treasury", None)}
    for side in ("from", "to"):
        assert [row[f"{side}Name"] for row in rows] == [named(row[f"{side}Wallet"]) for row in rows]


def test_counterparties(client: TestClient[Any]) -> None:
    rows = rows_of(client, f"{WALLET}/activities")
    assert {row["counterpartyName"] for row in rows} >= {"Custodian", None}
    assert [row["counterpartyName"] for row in rows] == [named(row["counterparty"]) for row in rows]


def test_files_have_the_same_names_as_pages(client: TestClient[Any]) -> None:
    for path, column in ((f"{TOKEN}/cap-table", "name"), (f"{WALLET}/activities", "counterpartyName")):
        shown = [row[column] or "" for row in rows_of(client, path)]
        file = client.get(path, headers={"Accept": "text/csv"}).text
        told = [row[column] for row in csv.DictReader(io.StringIO(file))]
        assert sorted(told) == sorted(shown)


def test_name_disappears_with_its_removed_wallet(client: TestClient[Any]) -> None:
    (known,) = client.get("/v1/wallets", params={"ledgerId": HOLDERS["h2"]}).json()["data"]
    before = client.get(f"{TOKEN}/cap-table")
    assert client.delete(f"/v1/wallets/{known['id']}").status_code == 204
    after = client.get(f"{TOKEN}/cap-table", headers={"If-None-Match": before.headers["etag"]})
    assert (after.status_code, "Custodian" in before.text, "Custodian" in after.text) == (200, True, False)


def test_holder_types_come_only_from_own_and_public_data(
    client: TestClient[Any], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Public data is the same for all users of a network, such as burn addresses."""
    token = client.get(TOKEN).json()["ledgerId"]
    other = client.post("/v1/tokens", json={"ledger": EXAMPLE_LEDGER, "ledgerId": HOLDERS["h3"], "symbol": "OTHER"})
    assert (other.status_code, HOLDERS["h3"] != token) == (201, True)
    own = {HOLDERS["h1"]: "Wallet", HOLDERS["h2"]: "Wallet", HOLDERS["h3"]: "Token"}
    rows = rows_of(client, f"{TOKEN}/cap-table")
    assert {row["holderType"] for row in rows} == {"Wallet", "Token", None}
    assert [row["holderType"] for row in rows] == [own.get(row["wallet"].lower()) for row in rows]
    monkeypatch.setattr(EvmAddressCodec, "burns", frozenset({HOLDERS["h2"]}))
    rows = rows_of(client, f"{TOKEN}/cap-table")
    assert [row["holderType"] for row in rows if row["wallet"].lower() == HOLDERS["h2"]] == ["Burn"]


def test_files_escape_names_that_look_like_formulas(client: TestClient[Any]) -> None:
    (known,) = client.get("/v1/wallets", params={"ledgerId": HOLDERS["h2"]}).json()["data"]
    assert client.patch(f"/v1/wallets/{known['id']}", json={"name": "=1+1"}).status_code == 200
    assert "=1+1" in {row["name"] for row in rows_of(client, f"{TOKEN}/cap-table")}
    file = client.get(f"{TOKEN}/cap-table", headers={"Accept": "text/csv"}).text
    assert "'=1+1" in {row["name"] for row in csv.DictReader(io.StringIO(file))}
