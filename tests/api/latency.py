"""Latency of first pages over a serving file with 100,000 holders and activities and 500,000 steps of a price.

Made without a chain or a pipeline.

Run it by hand: `python -m tests.api.latency [requests]`. The benchmark of the whole path is `tests/bench/api.py`.
"""

import http.client
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from socket import socket

import duckdb
import psutil

from api.examples import EXAMPLE_LEDGER, EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from tests.api.marts import move_pointer
from tests.api.valued import ETHER_PAIR_ID, ETHER_PAIR_KEY, SMALL_PAIR_ID, SMALL_PAIR_KEY, link_small
from tests.api.world import World, make_world

_ROWS = 100_000
_STEPS = 500_000
_SERVE = """
from dataclasses import replace
from pathlib import Path
import sys
from api.server import serve
from control.settings import load_settings
settings = load_settings({"LEDGERMART_DATA_DIR": sys.argv[1], "LEDGERMART_NETWORKS": sys.argv[2],
                          "LEDGERMART_RATE_LIMIT_PER_MINUTE": "10000000"})
serve(settings, "127.0.0.1", int(sys.argv[3]))
"""


def publish_large(world: World) -> None:
    """Publish a version with 100,000 more holders of the first token and as many more activities of the wallet."""
    directory = world.settings.serving_dir
    path = directory / "marts-000000000002.duckdb"
    path.write_bytes((directory / "marts-000000000001.duckdb").read_bytes())
    token, wallet = world.subject_keys[EXAMPLE_TOKEN_ID], world.subject_keys[EXAMPLE_WALLET_ID]
    holder = "'0x' || lpad(to_hex(hash(i)), 40, '5')"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"delete from marts.token_holders where subject_key = {token}")
        connection.execute(
            f"""insert into marts.token_holders by name
            select '{world.tenant_id}' as tenant_id, {token} as subject_key, {holder} as holder_address,
                (10000000 - i)::varchar::bignum as quantity_raw, 'Reconciled' as reconciliation,
                400 as checked_block_number, 'Observed' as opened_by from range({_ROWS}) t (i)"""
        )
        connection.execute(
            f"""insert into marts.balance_changes
                (tenant_id, subject_key, range_from_block, token_address, holder_address, block_number, block_time,
                movement_raw, balance_raw, balance, is_moved, is_observed, is_checked, is_adjusted)
            select '{world.tenant_id}', {token}, 251, '0xaa', {holder}, 251 + i % 100 + 10 * step,
                timestamp '2026-02-01 00:35:00', 1::varchar::bignum, (10000000 - i + step)::varchar::bignum,
                (10000000 - i + step)::varchar, true, false, false, false
            from range({_ROWS}) t (i), range(3) steps (step)"""
        )
        connection.execute(
            f"""insert into marts.token_activities
                (tenant_id, subject_key, activity_id, activity_type, status, block_number, block_time,
                transaction_index, log_index, from_address, to_address, amount_raw, amount)
            select '{world.tenant_id}', {token}, 'tact_' || i::varchar, 'Transfer', 'Finalized', 251 + i // 1000,
                timestamp '2026-02-01 00:35:00' + to_seconds(i // 1000), i % 1000, i % 1000,
                '0x{"a" * 40}', {holder}, i::varchar::bignum, i::varchar from range({_ROWS}) t (i)"""
        )
        columns = [row[0] for row in connection.execute("describe marts.wallet_activities").fetchall()]
        values = {
            "tenant_id": f"'{world.tenant_id}'",
            "subject_key": str(wallet),
            "activity_id": "'act_' || lpad(i::varchar, 12, '0')",
            "activity_type": "'TransferIn'",
            "direction": "'In'",
            "status": "'Finalized'",
            "block_number": "251 + i // 1000",
            "block_time": "timestamp '2026-02-01 00:35:00' + to_seconds(i // 1000)",
            "transaction_index": "i % 1000",
            "log_index": "i % 1000",
            "transaction_hash": f"'0x{'a' * 64}'",
            "counterparty_address": holder,
            "token_address": f"'0x{'a' * 40}'",
            "amount_raw": "i::varchar::bignum",
            "amount": "i::varchar",
            "amount_status": "'Known'",
            "fee_status": "'Separate'",
            "counterparty_count": "1",
            "counterparty_status": "'Known'",
        }
        listed = ", ".join(values.get(column, "null") for column in columns)
        connection.execute(f"insert into marts.wallet_activities select {listed} from range({_ROWS}) t (i)")
        _add_values(connection, world, token, wallet)
    move_pointer(directory, 2, path.name)


def _add_values(connection: duckdb.DuckDBPyConnection, world: World, token: int, wallet: int) -> None:
    """Link the token to a pair with one price step per second up to the newest block, and value all rows."""
    link_small(world)
    keys = f"'{world.tenant_id}' as tenant_id, {SMALL_PAIR_KEY} as pair_key"
    connection.execute(
        f"""insert into marts.price_pairs by name select {keys}, '{SMALL_PAIR_ID}' as pair_id, 'SMALL' as priced_as,
            'USD' as priced_in, 'Trade' as price_type, 420 as max_age_seconds"""
    )
    connection.execute(
        f"""insert into marts.system_prices by name
        select {keys}, valid_from, valid_from + to_seconds(1) as valid_until, valid_from as effective_from,
            1.5::decimal(38, 18) + i % 1000 as price, (1.5::decimal(38, 1) + i % 1000)::varchar as price_text,
            'Priced' as price_status, 'src_kraken' as source_id, 0 as position, false as is_fallback,
            false as is_partial, 'Direct' as derivation
        from (
            select i, timestamp '2026-02-01 01:00:00' - to_seconds({_STEPS - 1} - i) as valid_from
            from range({_STEPS}) t (i)
        ) order by valid_from"""
    )
    connection.execute(
        f"""insert into marts.source_prices by name
        select tenant_id, pair_key, source_id, position, effective_from, price, price_text, is_partial, derivation,
            'Used' as state, 'price_' || row_number() over () as price_id
        from marts.system_prices where pair_key = {SMALL_PAIR_KEY}"""
    )
    connection.execute(
        f"""update marts.token_prices set pair_key = {SMALL_PAIR_KEY}, pair_id = '{SMALL_PAIR_ID}', price_text = '2',
            price_status = 'Priced', market_capitalization = '310', market_capitalization_status = 'Priced'
        where subject_key = {token}"""
    )
    connection.execute(
        f"""insert into marts.price_pairs by name
        select * replace ({ETHER_PAIR_KEY} as pair_key, '{ETHER_PAIR_ID}' as pair_id, 'ETH' as priced_as)
        from marts.price_pairs where pair_key = {SMALL_PAIR_KEY}"""
    )
    connection.execute(
        f"""insert into marts.system_prices by name
        select * replace ({ETHER_PAIR_KEY} as pair_key) from marts.system_prices where pair_key = {SMALL_PAIR_KEY}"""
    )
    small = f"'0x{'a' * 40}'"
    connection.execute(
        f"""insert into marts.token_pairs by name
        select '{world.tenant_id}' as tenant_id, subject_key, 'ethereum' as network, token_address, pair_key
        from (values
            ({wallet}, 'native', {ETHER_PAIR_KEY}),
            ({wallet}, {small}, {SMALL_PAIR_KEY}),
            ({token}, {small}, {SMALL_PAIR_KEY})
        ) t (subject_key, token_address, pair_key)"""
    )
    for kind, subject in (("token", token), ("wallet", wallet)):
        connection.execute(
            f"""insert into marts.{kind}_activity_values by name
            select {keys}, subject_key, activity_id, block_number, block_time, transaction_index, '2' as price_text,
                '4' as value, 'Priced' as value_status
            from marts.{kind}_activities where subject_key = {subject} order by block_number"""
        )


def measure(requests: int) -> None:
    """Print p50, p99 and the server's CPU time per request of each path, with one client and one connection."""
    with tempfile.TemporaryDirectory() as folder, closing(socket()) as free:
        world = make_world(Path(folder))
        publish_large(world)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        arguments = [str(world.settings.data_dir), str(world.settings.networks_file), str(port)]
        server = subprocess.Popen([sys.executable, "-c", _SERVE, *arguments], stderr=subprocess.DEVNULL)
        process = psutil.Process(server.pid)
        try:
            client = http.client.HTTPConnection("127.0.0.1", port)
            _wait(client)
            for path, count in (
                (f"/v1/tokens/{EXAMPLE_TOKEN_ID}/cap-table", requests),
                (f"/v1/tokens/{EXAMPLE_TOKEN_ID}/cap-table?sort=wallet", requests // 10),
                (f"/v1/tokens/{EXAMPLE_TOKEN_ID}/cap-table?asOf=block:380", requests // 50),
                (f"/v1/tokens/{EXAMPLE_TOKEN_ID}/cap-table/changes?from=block:255", requests // 50),
                (f"/v1/tokens/{EXAMPLE_TOKEN_ID}/coverage", requests // 10),
                (f"/v1/networks/ledgers/{EXAMPLE_LEDGER}/statistics", requests // 50),
                (f"/v1/wallets/{EXAMPLE_WALLET_ID}/activities", requests),
                (f"/v1/wallets/{EXAMPLE_WALLET_ID}/balances", requests // 10),
                (f"/v1/wallets/{EXAMPLE_WALLET_ID}/balances?asOf=block:380", requests // 10),
                ("/v1/tokens", requests),
                (f"/v2/pairs/{SMALL_PAIR_ID}", requests // 10),
                (f"/v2/pairs/{SMALL_PAIR_ID}/prices/history", requests // 10),
                (f"/v2/pairs/{SMALL_PAIR_ID}/prices/history?interval=1h", requests // 50),
                (f"/v1/tokens/{EXAMPLE_TOKEN_ID}/market-capitalization", requests // 10),
                (f"/v1/tokens/{EXAMPLE_TOKEN_ID}/market-capitalization?interval=1h", requests // 50),
                (f"/v1/wallets/{EXAMPLE_WALLET_ID}/value-history", requests // 10),
                (f"/v1/wallets/{EXAMPLE_WALLET_ID}/value-history?interval=1h", requests // 50),
                (f"/v1/tokens/{EXAMPLE_TOKEN_ID}/cap-table?explain=true&limit=100", requests // 50),
                (f"/v1/wallets/{EXAMPLE_WALLET_ID}/activities?explain=true&limit=100", requests // 50),
            ):
                _ask(client, path, world.headers(), 20)
                before = process.cpu_times()
                seconds = _ask(client, path, world.headers(), count)
                after = process.cpu_times()
                used = (after.user + after.system - before.user - before.system) / count
                hundredths = statistics.quantiles(seconds, n=100, method="inclusive")
                sys.stdout.write(
                    f"{path}: p50 {hundredths[49] * 1e3:.2f} ms, p99 {hundredths[98] * 1e3:.2f} ms, "
                    f"processor {used * 1e3:.2f} ms\n"
                )
        finally:
            server.terminate()
            server.wait()


def _wait(client: http.client.HTTPConnection) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            client.request("GET", "/health/ready")
            if client.getresponse().read().startswith(b'{"status":"ready"'):
                return
        except ConnectionError:
            client.close()
        time.sleep(0.1)
    raise TimeoutError("the API did not become ready")


def _ask(client: http.client.HTTPConnection, path: str, headers: dict[str, str], count: int) -> list[float]:
    seconds = []
    for _ in range(count):
        begun = time.perf_counter()
        client.request("GET", path, headers=headers)
        answer = client.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:300]!r}")
        seconds.append(time.perf_counter() - begun)
    return seconds


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
