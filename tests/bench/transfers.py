"""A warehouse with many transfers, as collecting leaves it: of 20 tracked tokens, with 50 tracked wallets.

There is a holder per 30 transfers. Every row follows from its number, so the same size gives the same rows. No balance
is ever below zero: a third of the transfers fund a holder for the first time, and holders pass a little on. Small
tables are written by the product's own functions; transfers and headers, of which there are millions, by statements.
"""

from datetime import UTC, datetime
from pathlib import Path

import duckdb

from control.networks.definitions import load_networks
from control.ranges import BlockRange
from control.settings import load_settings
from pipelines.attestations.records import Attestation, begin_period, finish_attestation, list_balances
from pipelines.balances.readings import insert_balance_observations, insert_supply_observations
from pipelines.chain.contracts import record_creation, store_metadata
from pipelines.chain.coverage import Watched, record_coverage
from pipelines.chain.headers import insert_blocks
from pipelines.chain.rows import store_segment
from pipelines.chain.states import record_healthy
from pipelines.extract.family import PAST_BALANCES
from pipelines.raw.builds import finish_batch, record_transform
from pipelines.raw.database import open_warehouse, transaction
from pipelines.rows import Origin, RpcUsage, Segment, UsageRecord, WorkClass
from pipelines.tenants.configuration import open_batch, replace_control
from tests.snapshots import record, snapshot_of

NETWORK = "local"
TOKENS = 20
WALLETS = 50
ROWS_PER_BLOCK = 100
ROWS_PER_HOLDER = 30
# Balances that a cycle reads at its newest block. In half of the tokens, a fifth of them contradict the transfers.
READINGS = 200
_FINALITY_BLOCKS = 64
_PROVIDER = "bench"
_STARTED = datetime(2025, 1, 1, tzinfo=UTC)
_FINGERPRINT = "bench"

# The parties of row i, which is row j of its token, as text; an address is a hash of it. Of 300 rows of a token one
# funds a distributor, one burns, one mints, three pay a wallet, three are paid by it; every third pays a new holder.
_PARTIES = f"""
    select
        i,
        i % {TOKENS} as token,
        i // {TOKENS} as j,
        j % 300 as place,
        'distributor ' || token || ' ' || j // 300 as distributor,
        'wallet ' || hash(token, if(place in (80, 182, 281), j - 30, j)) % {WALLETS} as wallet,
        case
            when j = 0 or place = 4 then 'nobody'
            when place in (1, 2) then 'treasury ' || token
            when place in (50, 152, 251) then distributor
            when place in (80, 182, 281) then wallet
            when j % 3 = 0 then distributor
            else 'holder ' || 1 + hash(i, 'sender') % ((j - 1) // 3)
        end as sender,
        case
            when j = 0 or place = 4 then 'treasury ' || token
            when place = 1 then distributor
            when place = 2 then 'nobody'
            when place in (50, 152, 251) then wallet
            when j % 3 = 0 then 'holder ' || j // 3
            else 'holder ' || hash(i, 'recipient') % $holders
        end as recipient,
        case
            when j = 0 then 10000000000000000000000000000
            when place = 1 then 1000000000000000000000000
            when place in (50, 152, 251) then 10000000000000000000000
            when place in (2, 4) or j % 3 = 0 then 1000000000000000000000 + hash(i, 'funded') % 1000000000000000000
            else 1 + hash(i, 'paid') % 1000000000000000000
        end::hugeint as amount
    from range($first, $end) as numbers (i)
"""


def _address(party: str) -> str:
    return f"if({party} = 'nobody', '0x{'0' * 40}', '0x' || left(sha256({party}), 40))"


def _block_hash(block: str) -> str:
    return f"'0x' || sha256('block ' || ({block}))"


_TRANSFERS = f"""
    select
        1 + i // {ROWS_PER_BLOCK} as block_number,
        {_block_hash(f"1 + i // {ROWS_PER_BLOCK}")} as block_hash,
        (i % {ROWS_PER_BLOCK})::integer as transaction_index,
        '0x' || sha256('transaction ' || i) as transaction_hash,
        (i % {ROWS_PER_BLOCK})::integer as log_index,
        {_address("'token ' || token")} as token_address,
        {_address("sender")} as from_address,
        {_address("recipient")} as to_address,
        amount::bignum as amount_raw
    from ({_PARTIES})
"""

_HEADERS = f"""
    select
        block_number,
        {_block_hash("block_number")} as block_hash,
        {_block_hash("block_number - 1")} as parent_hash,
        timestamp '{_STARTED:%Y-%m-%d}' + to_seconds(12 * block_number) as block_time
    from range($first_block, $end_block) as numbers (block_number)
"""


def make_warehouse(path: Path, rows: int, memory_mb: int | None = None) -> None:
    """Make a warehouse with `rows` transfers that are not in the marts yet."""
    with open_warehouse(path, memory_mb) as connection:
        # The service writes with one thread while it fetches.
        connection.execute("set threads = 2")
        batch_id = _configure(connection)
        last = _blocks(rows)
        names = {"first": 0, "end": rows, "holders": max(rows // ROWS_PER_HOLDER, 1)}
        with transaction(connection):
            connection.execute(
                f"""
                insert into raw.blocks by name
                select *, $network as network, $batch as batch_id, false as is_tail from ({_HEADERS})
                """,
                {"first_block": 0, "end_block": last + 1, "network": NETWORK, "batch": batch_id},
            )
            connection.execute(
                f"""
                insert into raw.token_transfers by name
                select *, $network as network, $batch as batch_id from ({_TRANSFERS})
                """,
                {**names, "network": NETWORK, "batch": batch_id},
            )
            for kind, party in (("token", "token_address"), ("wallet", "unnest([from_address, to_address])")):
                counts = connection.execute(
                    f"""
                    select address, count(*)
                    from (select {party} as address from raw.token_transfers) as parties
                    semi join raw.control_subjects as subjects
                        on parties.address = subjects.address and subjects.kind = $kind
                    group by address
                    """,
                    {"kind": kind},
                ).fetchall()
                _cover(connection, kind, dict(counts), BlockRange(1, last), batch_id)
        _read(connection, BlockRange(1, last), batch_id)
        record_healthy(connection, NETWORK, _head(connection, last), max(last - _FINALITY_BLOCKS, 0), batch_id)
        finish_batch(connection, batch_id)


def add_rows(path: Path, base: int, before: int, rows: int) -> int:
    """Add transfers in new blocks, as a cycle collects them; return the first of the blocks.

    Args:
        path: the warehouse.
        base: how many transfers it was made with.
        before: how many it has.
        rows: how many to add; both whole blocks.
    """
    covered = BlockRange(_blocks(before) + 1, _blocks(before + rows))
    names = {"first": before, "end": before + rows, "holders": max(base // ROWS_PER_HOLDER, 1)}
    with open_warehouse(path) as connection:
        batch_id = open_batch(connection, f"rows {before}")
        headers = connection.execute(_HEADERS, {"first_block": covered.first, "end_block": covered.last + 1}).pl()
        insert_blocks(connection, NETWORK, headers, batch_id)
        transfers = connection.execute(
            f"select * replace (amount_raw::varchar as amount_raw) from ({_TRANSFERS})", names
        ).pl()
        tracked = connection.execute("select kind, address from raw.control_subjects").fetchall()
        segment = Segment("token", covered, tuple(address for kind, address in tracked if kind == "token"))
        store_segment(connection, NETWORK, segment, {"token_transfers": transfers}, Origin(_PROVIDER), batch_id)
        # The rows include the wallets' transfers.
        with transaction(connection):
            counts = {address: 0 for kind, address in tracked if kind == "wallet"}
            _cover(connection, "wallet", counts, covered, batch_id)
        _read(connection, covered, batch_id)
        final = covered.last - _FINALITY_BLOCKS
        record_healthy(connection, NETWORK, _head(connection, covered.last), final, batch_id)
        finish_batch(connection, batch_id)
    return covered.first


def read_past(path: Path, base: int, count: int) -> None:
    """Read `count` holders of a token at a block in the first third; all readings agree."""
    block = max(_blocks(base) // 3, 1)
    with open_warehouse(path) as connection:
        batch_id = open_batch(connection, f"past readings of {block}")
        balances = connection.execute(
            f"""
            with agreeing as (
                select max(address) as token_address
                from raw.control_subjects
                where kind = 'token'
            ),

            moved as (
                select token_address, to_address as holder_address, amount_raw as movement_raw
                from raw.token_transfers
                semi join agreeing using (token_address)
                where block_number <= $block
                union all
                select token_address, from_address, 0::bignum - amount_raw
                from raw.token_transfers
                semi join agreeing using (token_address)
                where block_number <= $block
            )

            select
                token_address, holder_address, $block::bigint as block_number, {_block_hash("$block")} as block_hash,
                sum(movement_raw)::varchar as quantity_raw, ['ten_bench'] as tenant_ids
            from moved
            where holder_address != {_address("'nobody'")}
            group by token_address, holder_address
            order by hash(holder_address)
            limit {count}
            """,
            {"block": block},
        ).pl()
        insert_balance_observations(connection, NETWORK, balances, "Check", batch_id)
        finish_batch(connection, batch_id)


def attest_past(path: Path, base: int) -> None:
    """Attest the block of that token without the node: select the confirming readings, and write the record."""
    block = max(_blocks(base) // 3, 1)
    with open_warehouse(path) as connection:
        batch_id = open_batch(connection, f"attestation of {block}")
        ((subject_key, address, tenant_id, block_hash),) = connection.execute(
            f"""
            select subject_key, address, tenant_id, {_block_hash("$block")}
            from raw.control_subjects
            where kind = 'token'
            order by address desc
            limit 1
            """,
            {"block": block},
        ).fetchall()
        begin_period(connection, NETWORK, subject_key, block, block_hash, _STARTED.replace(tzinfo=None))
        attestation = Attestation(subject_key, 1, "token", tenant_id, address, block, block_hash)
        list_balances(connection, attestation)
        spending = UsageRecord(WorkClass.ATTESTATION, "balances", RpcUsage(0, 0))
        finish_attestation(connection, NETWORK, attestation, None, spending, batch_id)
        finish_batch(connection, batch_id)


def record_built(path: Path) -> None:
    """Record that everything loaded is in the marts."""
    with open_warehouse(path) as connection:
        row = connection.execute("select max(batch_id) from raw.batches").fetchone()
        assert row is not None
        record_transform(connection, row[0], _FINGERPRINT)


def _blocks(rows: int) -> int:
    """Return the newest block of a number of rows; the first one is block 1."""
    return -(-rows // ROWS_PER_BLOCK)


def _configure(connection: duckdb.DuckDBPyConnection) -> int:
    """Let one tenant track everything from block 1 on; return the batch."""
    subjects = [
        *(("token", f"tok_{number}", f"token {number}", f"T{number}") for number in range(TOKENS)),
        *(("wallet", f"wal_{number}", f"wallet {number}", None) for number in range(WALLETS)),
    ]
    parties = [party for _, _, party, _ in subjects]
    found = connection.execute(
        f"select party, {_address('party')} from (select unnest($parties) as party)", {"parties": parties}
    )
    addresses = dict(found.fetchall())
    owned = ("ten_bench", "led_bench", NETWORK)
    snapshot = snapshot_of(
        tenants=[record("control_tenants", "ten_bench", "bench")],
        ledgers=[record("control_ledgers", "led_bench", "ten_bench", NETWORK, "bench")],
        subjects=[
            record("control_subjects", key, name, kind, *owned, addresses[party], symbol, created_at=_STARTED)
            for key, (kind, name, party, symbol) in enumerate(subjects, 1)
        ],
        windows=[record("control_windows", key, key, _STARTED) for key in range(1, len(subjects) + 1)],
    )
    networks = {
        NETWORK: load_networks(load_settings({}).networks_file, {"LOCAL_RPC_URL": "http://127.0.0.1:1"})[NETWORK]
    }
    batch_id = open_batch(connection, "bench")
    replace_control(connection, snapshot, networks, batch_id)
    connection.execute(
        """
        insert into raw.view_ranges by name
        select 'Window' as origin, window_key as origin_key, subject_key, $network as network, 1 as from_block
        from raw.control_windows
        """,
        {"network": NETWORK},
    )
    contracts = connection.execute(
        """
        select
            address as token_address, 'Fungible' as contract_status, 'ERC-20' as standard, symbol, symbol as name,
            if(subject_key % 4 = 0, 6, 18)::integer as decimals, null::varchar as detail,
            'ten_bench' as tenant_id
        from raw.control_subjects
        where kind = 'token'
        """
    ).pl()
    store_metadata(connection, NETWORK, contracts, 1, batch_id)
    for token in contracts["token_address"]:
        record_creation(connection, NETWORK, token, "ten_bench", 1, batch_id)
    return batch_id


def _cover(
    connection: duckdb.DuckDBPyConnection, kind: str, counts: dict[str, int], covered: BlockRange, batch_id: int
) -> None:
    watched = {Watched("token" if kind == "token" else "wallet", address): count for address, count in counts.items()}
    record_coverage(connection, NETWORK, watched, covered, Origin(_PROVIDER), batch_id)


def _head(connection: duckdb.DuckDBPyConnection, number: int) -> dict[str, object]:
    row = connection.execute(
        "select block_hash, block_time from raw.blocks where block_number = ?", [number]
    ).fetchone()
    assert row is not None
    return {
        "head_number": number,
        "head_hash": row[0],
        "head_time": row[1],
        "capabilities": [PAST_BALANCES],
    }


def _read(connection: duckdb.DuckDBPyConnection, covered: BlockRange, batch_id: int) -> None:
    """Read the supply of all tokens and the balance of some pairs at the range's newest block."""
    supplies = connection.execute(
        f"""
        select
            token_address, $last::bigint as block_number, {_block_hash("$last")} as block_hash,
            sum(case
                when from_address = {_address("'nobody'")} then amount_raw
                when to_address = {_address("'nobody'")} then 0::bignum - amount_raw
                else 0::bignum
            end)::varchar as total_supply_raw,
            ['ten_bench'] as tenant_ids
        from raw.token_transfers
        group by token_address
        """,
        {"last": covered.last},
    ).pl()
    insert_supply_observations(connection, NETWORK, supplies, batch_id)
    balances = connection.execute(
        f"""
        with pairs as (
            select distinct token_address, to_address as holder_address
            from raw.token_transfers
            where block_number between $first and $last and to_address != {_address("'nobody'")}
            order by hash(token_address, to_address), token_address, to_address
            limit {READINGS}
        ),

        moved as (
            select pairs.token_address, pairs.holder_address, 0::bignum - amount_raw as movement_raw
            from raw.token_transfers as transfers
            inner join pairs
                on transfers.token_address = pairs.token_address and transfers.from_address = pairs.holder_address
            union all
            select pairs.token_address, pairs.holder_address, amount_raw
            from raw.token_transfers as transfers
            inner join pairs
                on transfers.token_address = pairs.token_address and transfers.to_address = pairs.holder_address
        ),

        summed as (
            select token_address, holder_address, sum(movement_raw) as quantity_raw
            from moved
            group by token_address, holder_address
        )

        select
            token_address, holder_address, $last::bigint as block_number, {_block_hash("$last")} as block_hash,
            (
                quantity_raw
                + if(
                    token_address < '0x8'
                    and row_number() over (order by token_address < '0x8', token_address, holder_address) % 5 = 0,
                    1, 0
                )::bignum
            )::varchar as quantity_raw,
            ['ten_bench'] as tenant_ids
        from summed
        """,
        {"first": covered.first, "last": covered.last},
    ).pl()
    insert_balance_observations(connection, NETWORK, balances, "Check", batch_id)
