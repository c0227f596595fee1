"""A published version with a token of many holders and a wallet of many activities over a year, made by statements."""

from dataclasses import dataclass
from datetime import timedelta

import duckdb

from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from tests.api.marts import move_pointer, show_addresses
from tests.api.valued import ETHER_PAIR_KEY, SMALL_PAIR_KEY, link_small, naive
from tests.api.world import World, hash_of, time_of

_FIRST = 100
_DAYS = 365
_LAST = _FIRST + _DAYS * 7200
_TOKEN_ADDRESS = "0x" + "a" * 40
_NAMED = ("wallet_activities", "wallet_balances", "wallet_value_days", "wallet_activity_values")


@dataclass(frozen=True)
class Size:
    """Size of the reports' data; every holder's balance changed three times."""

    holders: int
    activities: int


def publish_large(world: World, size: Size) -> None:
    """Publish version 2: the example token and the example wallet, grown; both are priced."""
    directory = world.settings.serving_dir
    path = directory / "marts-000000000002.duckdb"
    path.write_bytes((directory / "marts-000000000001.duckdb").read_bytes())
    link_small(world)
    with duckdb.connect(str(path)) as connection:
        _fill_token(connection, world, size)
        _fill_wallet(connection, world, size)
        _fill_prices(connection, world)
        show_addresses(connection)
    move_pointer(directory, 2, path.name)


def _holder(number: str) -> str:
    """Return the address of a holder; neighbours in rank have unrelated addresses."""
    return f"'0x' || left(md5(({number})::varchar) || md5('more' || ({number})), 40)"


def _time(block: str) -> str:
    return f"timestamp '{naive(time_of(_FIRST))}' + to_seconds(12 * ({block} - {_FIRST}))"


def _fill_token(connection: duckdb.DuckDBPyConnection, world: World, size: Size) -> None:
    token = world.subject_keys[EXAMPLE_TOKEN_ID]
    count, keys = size.holders, f"'{world.tenant_id}' as tenant_id, {token} as subject_key"
    raw = f"(({count} - i)::varchar || lpad(i::varchar, 18, '0'))::bignum"
    shown = f"({count} - i)::varchar || rtrim(rtrim('.' || lpad(i::varchar, 18, '0'), '0'), '.')"
    _view(connection, world, token)
    for table in ("token_holders", "balance_changes", "supply_changes"):
        connection.execute(f"delete from marts.{table} where subject_key = {token}")
    connection.execute(
        f"""insert into marts.token_holders by name
        select {keys}, {_holder("i")} as holder_address, {raw} as quantity_raw, {_LAST} as checked_block_number,
            case when i % 100 = 3 then 'Adjusted' when i % 10 = 7 then 'Unchecked' else 'Reconciled' end
                as reconciliation,
            'Observed' as opened_by
        from range({count}) as numbers (i) order by i"""
    )
    block = f"{_FIRST} + (hash(i, step) % 800000 + 850000 * step)::bigint"
    connection.execute(
        f"""insert into marts.balance_changes by name
        select {keys}, {_FIRST} as range_from_block, '{_TOKEN_ADDRESS}' as token_address, 'SMALL' as token_symbol,
            {_holder("i")} as holder_address, block_number, {_time("block_number")} as block_time,
            1::varchar::bignum as movement_raw, {raw} as balance_raw, {shown} as balance,
            (step = 0)::tinyint as holder_change, step = 0 as is_first,
            true as is_moved, false as is_observed, false as is_checked, false as is_adjusted,
            'Observed' as opened_by
        from (select i, step, {block} as block_number from range({count}) numbers (i), range(3) steps (step))
        order by block_number"""
    )
    supply = f"(select sum(quantity_raw) from marts.token_holders where subject_key = {token})"
    connection.execute(
        f"""insert into marts.supply_changes by name
        select {keys}, {_FIRST} as range_from_block, {_FIRST - 1} as block_number,
            {_time(str(_FIRST - 1))} as block_time, {supply} as total_supply_raw, '500000500000' as total_supply,
            false as is_moved, true as is_observed, true as is_checked, false as is_adjusted, 'Observed' as opened_by"""
    )
    connection.execute(
        f"""update marts.tokens set decimals = 18, holder_count = {count}, total_supply_raw = {supply},
            total_supply = '500000500000', total_supply_status = 'Observed', behaviour = 'Standard',
            opens_without_holders = false where subject_key = {token}"""
    )


def _fill_wallet(connection: duckdb.DuckDBPyConnection, world: World, size: Size) -> None:
    wallet, count = world.subject_keys[EXAMPLE_WALLET_ID], size.activities
    keys = f"'{world.tenant_id}' as tenant_id, {wallet} as subject_key"
    _view(connection, world, wallet)
    for table in _NAMED:
        connection.execute(f"delete from marts.{table} where subject_key = {wallet}")
    block = f"{_FIRST} + (i * {_LAST - _FIRST}) // {count}"
    connection.execute(
        f"""insert into marts.wallet_activities by name
        select {keys}, 'act_' || md5(i::varchar) as activity_id, 'Finalized' as status, block_number,
            {_time("block_number")} as block_time, i % 200 as transaction_index, i as log_index,
            case i % 3 when 0 then 'TransferOut' when 1 then 'TransferIn' else 'Fee' end as activity_type,
            case i % 3 when 1 then 'In' else 'Out' end as direction,
            '0x' || md5(i::varchar) || md5('hash' || i) as transaction_hash,
            {_holder("i % 5000")} as counterparty_address,
            case i % 2 when 0 then '{_TOKEN_ADDRESS}' else 'native' end as token_address,
            case i % 2 when 0 then 'SMALL' else 'ETH' end as token_symbol,
            (i + 1)::varchar::bignum as amount_raw, (i + 1)::varchar as amount, 'Known' as amount_status,
            'Separate' as fee_status, 1 as counterparty_count, 'Known' as counterparty_status
        from (select i, {block} as block_number from range({count}) numbers (i)) order by block_number"""
    )
    connection.execute(
        f"""insert into marts.wallet_activity_values by name
        select {keys}, {SMALL_PAIR_KEY} as pair_key, activity_id, block_number, block_time, transaction_index,
            '2.5' as price_text, (log_index * 2)::varchar || '.5' as value, 'Priced' as value_status
        from marts.wallet_activities where subject_key = {wallet} order by block_number"""
    )
    connection.execute(
        f"""insert into marts.wallet_balances by name
        select {keys}, address as token_address, symbol as token_symbol, '7000000'::bignum as quantity_raw,
            '7' as quantity, 'Reconciled' as reconciliation, {_LAST} as checked_block_number, 'Observed' as opened_by
        from (values ('native', 'ETH'), ('{_TOKEN_ADDRESS}', 'SMALL')) assets (address, symbol)"""
    )
    connection.execute(
        f"""insert into marts.wallet_value_days by name
        select {keys}, (date '{time_of(_FIRST):%Y-%m-%d}' + i::integer) as day, (1000 + i)::varchar as value,
            'Priced' as value_status, true as value_complete, [] as unpriced, true as holdings_complete
        from range({_DAYS}) numbers (i)"""
    )


def _fill_prices(connection: duckdb.DuckDBPyConnection, world: World) -> None:
    """One step an hour for both pairs."""
    start = naive(time_of(_FIRST) - timedelta(days=1))
    connection.execute(
        f"""insert into marts.system_prices by name
        select '{world.tenant_id}' as tenant_id, pair_key, valid_from, valid_from + interval 1 hour as valid_until,
            valid_from as effective_from, 2.5 as price, '2.5' as price_text, 'Priced' as price_status,
            'src_kraken' as source_id, 0 as position, false as is_fallback, false as is_partial,
            'Direct' as derivation
        from (
            select pair_key, timestamp '{start}' + to_hours(i) as valid_from
            from range({(_DAYS + 3) * 24}) numbers (i), (values ({SMALL_PAIR_KEY}), ({ETHER_PAIR_KEY})) pairs (pair_key)
        ) order by pair_key, valid_from"""
    )
    connection.execute(
        f"""update marts.token_prices set pair_key = {SMALL_PAIR_KEY}, price_text = '2.5', price_status = 'Priced',
            market_capitalization = '1250001250000', market_capitalization_status = 'Priced'
        where subject_key = {world.subject_keys[EXAMPLE_TOKEN_ID]}"""
    )


def _view(connection: duckdb.DuckDBPyConnection, world: World, subject: int) -> None:
    """Cover the year without a gap."""
    connection.execute(f"delete from marts.coverage where subject_key = {subject}")
    first, last = naive(time_of(_FIRST)), naive(time_of(_LAST))
    connection.execute(
        f"""insert into marts.coverage by name
        select '{world.tenant_id}' as tenant_id, {subject} as subject_key, {_FIRST} as from_block, {_LAST} as to_block,
            timestamp '{first}' as from_time, timestamp '{last}' as to_time, true as is_covered"""
    )
    for table in ("tokens", "wallets"):
        connection.execute(
            f"""update marts.{table} set as_of_block_number = {_LAST}, as_of_block_hash = '{hash_of(_LAST)}',
                as_of_block_time = timestamp '{last}' where subject_key = {subject}"""
        )
    connection.execute(
        f"""insert into marts.blocks select 'ethereum', block, '0x' || lpad(to_hex(block), 64, '0'),
            {_time("block")}, false
        from (select {_FIRST} + day * 7200 as block from range({_DAYS + 1}) days (day)) anti join marts.blocks as known
            on known.block_number = block"""
    )
