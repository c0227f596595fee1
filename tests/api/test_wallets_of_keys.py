"""Wallets of keys in the API: shown forms, the operation that reads the keys, and logs without them."""

import logging
import sqlite3
from contextlib import closing
from typing import Any

import duckdb
import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_WALLET_ID, EXAMPLE_WALLET_OF_KEYS_ID
from api.http import media_types
from control.networks.definitions import load_networks
from control.networks.families import WalletKeys
from tests.api.marts import publish
from tests.api.test_errors import problem
from tests.api.world import KEYS, LEDGER_OF_KEYS, XPUB, World, marts_rows

PATH = f"/v1/wallets/{EXAMPLE_WALLET_OF_KEYS_ID}"
OTHER = f"pkh({XPUB}/7/*)"
WIF = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn"


@pytest.fixture
def keys(world: World) -> WalletKeys:
    found = load_networks(world.settings.networks_file, {})["bitcoin"].parse_keys(KEYS)
    assert found is not None
    return found


def add(client: TestClient[Any], ledger_id: str, **headers: str) -> Any:
    return client.post("/v1/wallets", json={"ledger": LEDGER_OF_KEYS, "ledgerId": ledger_id}, headers=headers)


def test_keys_are_shown_with_their_addresses_page_by_page(client: TestClient[Any], keys: WalletKeys) -> None:
    rows: list[dict[str, Any]] = []
    url = f"{PATH}/keys?limit=700"
    for _ in range(3):
        answer = client.get(url)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert (found["descriptor"], found["branches"], found["scanRange"]) == (keys.descriptor, 2, 1000)
        rows += found["data"]
        url = answer.links["next"]["url"] if found["page"]["nextCursor"] else ""
    assert url == ""
    assert [(row["branch"], row["index"]) for row in rows] == [(b, i) for b in (0, 1) for i in range(1000)]
    for row in (rows[0], rows[999], rows[1000], rows[1999]):
        assert row["address"] == keys.address(row["branch"], row["index"])


def test_keys_without_indices_have_one_address_for_each_branch(client: TestClient[Any]) -> None:
    wallet = add(client, f"wpkh({XPUB}/<0;1>)").json()["id"]
    found = client.get(f"/v1/wallets/{wallet}/keys").json()
    assert (found["scanRange"], [row["branch"] for row in found["data"]]) == (1, [0, 1])
    assert found["page"]["nextCursor"] is None


def test_single_address_has_no_keys(client: TestClient[Any]) -> None:
    problem(client.get(f"/v1/wallets/{EXAMPLE_WALLET_ID}/keys"), 409, "single-address")


@pytest.mark.parametrize("who", ["viewer", "operator"])
def test_other_roles_see_the_shortened_keys_alone(world: World, client: TestClient[Any], who: str) -> None:
    headers = world.headers(who)
    assert problem(client.get(f"{PATH}/keys", headers=headers), 403, "role-too-low")["requiredRole"] == "admin"
    for path in ("/v1/wallets", PATH, f"{PATH}/balances", f"{PATH}/activities", f"{PATH}/coverage"):
        assert XPUB[10:40] not in client.get(path, headers=headers).text


def test_every_answer_shows_the_shortened_keys(client: TestClient[Any], keys: WalletKeys) -> None:
    listed = {row["id"]: row["ledgerId"] for row in client.get("/v1/wallets").json()["data"]}
    assert listed[EXAMPLE_WALLET_OF_KEYS_ID] == client.get(PATH).json()["ledgerId"] == keys.shortened
    changed = client.patch(PATH, json={"name": "Reserve"})
    assert changed.json()["ledgerId"] == keys.shortened
    for form in (media_types.CSV, media_types.NDJSON):
        for path in ("/v1/wallets", f"{PATH}/balances", f"{PATH}/activities"):
            answer = client.get(path, headers={"Accept": form})
            assert XPUB[10:40] not in answer.text + str(answer.headers)
    assert keys.shortened in client.get("/v1/wallets", headers={"Accept": media_types.CSV}).text
    events = client.get("/v1/audit-events", params={"objectId": EXAMPLE_WALLET_OF_KEYS_ID}).json()["data"]
    assert [event["after"]["ledgerId"] for event in events] == [keys.shortened]


def test_equal_keys_return_409_with_the_shown_form(client: TestClient[Any], keys: WalletKeys) -> None:
    for spelling in (KEYS, keys.descriptor, f"wpkh([d34db33f/84h]{XPUB}/<1;0>/*)"):
        answer = problem(add(client, spelling), 409, "duplicate-wallet")
        assert answer["existingId"] == EXAMPLE_WALLET_OF_KEYS_ID
        assert keys.shortened in answer["detail"]


def test_filter_takes_any_spelling(client: TestClient[Any], keys: WalletKeys) -> None:
    for spelling in (KEYS, keys.descriptor, keys.shortened):
        found = client.get("/v1/wallets", params={"ledgerId": spelling, "limit": 1}).json()["data"]
        assert [row["id"] for row in found] == [EXAMPLE_WALLET_OF_KEYS_ID]


def test_marts_show_the_shortened_keys(world: World, keys: WalletKeys) -> None:
    rows = marts_rows(world)
    wallet = {"wallet_id": EXAMPLE_WALLET_OF_KEYS_ID, "address": f"keys:{keys.identity}", "shown_as": keys.shortened}
    owner = {"tenant_id": world.tenant_id, "subject_key": 99, "ledger_id": "led_x", "network": "bitcoin"}
    rows["wallets"].append({**owner, **wallet, "holdings_complete": False})
    file = publish(world.settings.serving_dir, 2, rows)
    with duckdb.connect(str(file), read_only=True) as connection:
        connection.execute("use marts")
        shown = connection.execute(
            """
            select wallets.shown_as, bi_wallets.wallet, bi_wallets.wallet_address, names.address
            from marts.wallets
            inner join bi.wallets as bi_wallets on wallets.wallet_id = bi_wallets.wallet_id
            inner join bi.address_names as names on wallets.wallet_id = names.wallet_id
            where wallets.address = $1
            """,
            [f"keys:{keys.identity}"],
        ).fetchall()
    assert shown == [(keys.shortened,) * 4]


def test_text_beyond_4000_characters_is_refused(client: TestClient[Any]) -> None:
    answer = problem(add(client, "wpkh(" + "x" * 4000), 422, "invalid-body")
    assert "4000 characters" in answer["detail"]


def test_store_and_log_have_neither_private_keys_nor_whole_descriptors(
    world: World, client: TestClient[Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    refused = [
        add(client, WIF, **{"Idempotency-Key": "k1"}),
        add(client, f"wpkh({WIF})"),
        client.get("/v1/wallets", params={"ledgerId": WIF}),
        client.get(f"/v1/wallets/{EXAMPLE_WALLET_ID}/activities", params={"counterparty": WIF}),
        client.get(f"/v1/wallets/{EXAMPLE_WALLET_ID}/activities", params={"token": WIF}),
        client.get("/v1/tokens", params={"ledgerId": WIF}),
    ]
    for answer in refused:
        assert answer.status_code == 422
        assert WIF[:20] not in answer.text
        assert "private key" in answer.text
    stored = add(client, OTHER, **{"Idempotency-Key": "k2"})
    repeated = add(client, OTHER, **{"Idempotency-Key": "k2"})
    assert stored.status_code == repeated.status_code == 201
    assert repeated.headers["Idempotency-Replayed"] == "true"
    assert client.get("/v1/wallets", params={"ledgerId": OTHER}).status_code == 200
    # The client of the tests logs addresses of requests itself.
    logged = [record.getMessage() for record in caplog.records if record.name != "httpx"]
    assert len(logged) >= len(refused)
    assert WIF not in str(logged)
    assert XPUB[10:40] not in str(logged)
    database = world.settings.data_dir / "control.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        lines = [line for line in connection.iterdump() if XPUB[10:40] in line]
    assert WIF.encode() not in database.read_bytes()
    assert [line.partition("(")[0] for line in lines] == ['INSERT INTO "subjects" VALUES'] * 2
