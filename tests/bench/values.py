"""Valuation of 10,000,000 activities and of three years of days of 1,000 wallets, and the cost of a late price.

SQL statements create the facts and system prices in the form that the preceding models produce. dbt builds the
dependent models; the measured seconds are dbt's own, by model.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from pipelines.raw.database import open_warehouse
from tests.bench.measurement import Measurement
from tests.integration.dbt_runner import Stores, run_dbt

_REPEAT = 3
_MODELS = (
    "token_pairs",
    "int_changed_values",
    "token_activity_values",
    "wallet_activity_values",
    "as_of_prices",
    "wallet_totals",
    "int_value_days",
    "token_value_days",
    "wallet_value_days",
    "int_token_pairs_transformed",
)
_SECONDS_OF_A_DAY = 86_400


@dataclass(frozen=True)
class Size:
    """Amount of data to value; changes of balances and prices are spread evenly over the days."""

    activities: int
    wallets: int
    tokens: int
    days: int
    changes_per_position: int
    prices_per_pair: int


_SIZE = Size(10_000_000, 1_000, 10, 3 * 365, 100, 100_000)


def run(folder: Path, repeat: int | None, note: Callable[[str], None], measured: list[Measurement]) -> None:
    """Value all rows once, then measure a late price, a new price and the end of a day, each `repeat` times."""
    size, stores = _SIZE, Stores(folder / "values")
    stores.folder.mkdir()
    with open_warehouse(stores.warehouse):
        pass
    note("values: making the facts")
    run_dbt(stores, "run")
    _fill(stores, size)

    def add(quantity: str, unit: str, value: float, goal: str = "") -> None:
        measured.append(Measurement("values", quantity, unit, value, goal))

    def build(*arguments: str) -> dict[str, float]:
        run_dbt(stores, "run", "--write-json", "--select", *_MODELS, *arguments)
        results = json.loads((stores.folder / "target" / "run_results.json").read_text())["results"]
        return {result["unique_id"].rsplit(".", 1)[1]: result["execution_time"] for result in results}

    note(f"values: {size.activities:,} activities and {size.wallets * size.days:,} days of wallets")
    seconds = build("--full-refresh")
    _expect(stores, size)
    add(f"{size.activities:,} activities", "s", seconds["token_activity_values"], "a minute or two")
    add(f"{size.wallets:,} wallets x {size.days:,} days x {size.tokens} tokens", "s", seconds["wallet_value_days"])
    for number in range(repeat or _REPEAT):
        note(f"values: run {number + 1}")
        _spoil(stores)
        # The one in force at the end of a day in the middle.
        _change_price(stores, size, -(-(size.days // 2 + number) * size.prices_per_pair // size.days) - 1, number)
        add("one late price: all models", "s", sum(build().values()))
        rows, days = _rewritten(stores)
        add("  activities written", "rows", rows)
        add("  days of wallets written", "rows", days)
        _change_price(stores, size, size.prices_per_pair - 1, number)
        add("one new price: all models", "s", sum(build().values()))
        _change_price(stores, size, None, number)
        add("nothing new: all models", "s", sum(build().values()))
        _end_day(stores, size.days + number + 1)
        add("one more day: all models", "s", sum(build().values()))


def _fill(stores: Stores, size: Size) -> None:
    """Make tracked tokens and wallets that hold all of them, linked to a pair each."""
    span = size.days * _SECONDS_OF_A_DAY
    per_token = size.activities // size.tokens
    with duckdb.connect(str(stores.warehouse)) as connection:
        connection.execute(f"attach '{stores.marts}' as marts_db")
        for statement in (
            f"""
            create temp table tokens as
            select n + 1 as subject_key, 'tok_' || n as subject_id, '0x' || lpad(n::varchar, 40, '0') as address
            from range({size.tokens}) as numbers (n)
            """,
            f"""
            create temp table wallets as
            select 1000 + n as subject_key, 'wal_' || n as subject_id, '0x' || lpad(n::varchar, 40, 'a') as address
            from range({size.wallets}) as numbers (n)
            """,
            """
            insert into raw.control_subjects by name
            select
                subject_key, subject_id, kind, 'ten' as tenant_id, 'led' as ledger_id, 'net' as network, address,
                case when kind = 'token' then subject_key end as pair_key, '2023-01-01' as created_at
            from (select *, 'token' as kind from tokens union all select *, 'wallet' as kind from wallets)
            """,
            """
            insert into raw.control_price_pairs by name
            select
                subject_key as pair_key, 'pair_' || subject_key as pair_id, 'ten' as tenant_id,
                'T' || subject_key as priced_as, 'USD' as priced_in, 'Trade' as price_type, false as allow_inverse,
                '2023-01-01' as created_at
            from tokens
            """,
            """
            insert into raw.transforms by name
            select 1 as batch_id, 0 as control_revision, '' as project_fingerprint, '2023-01-01' as finished_at
            """,
            """
            insert into intermediate.int_tokens_labelled by name
            select 'ten' as tenant_id, 'net' as network, address as token_address, 'T' || subject_key as symbol,
                18 as decimals, false as is_not_fungible
            from tokens
            """,
            f"""
            insert into marts_db.marts.tokens by name
            select
                subject_key, subject_id as token_id, 'ten' as tenant_id, 'led' as ledger_id, 'net' as network, address,
                'Fungible' as contract_status, 18 as decimals, 'Unknown' as total_supply_status,
                timestamp '2023-01-01' + to_seconds({span}) as as_of_block_time
            from tokens
            """,
            f"""
            insert into marts_db.marts.wallets by name
            select
                subject_key, subject_id as wallet_id, 'ten' as tenant_id, 'led' as ledger_id, 'net' as network,
                address, true as holdings_complete, timestamp '2023-01-01' + to_seconds({span}) as as_of_block_time
            from wallets
            """,
            f"""
            insert into marts_db.marts.coverage by name
            select
                'ten' as tenant_id, subject_key, 1 as from_block, {span} as to_block,
                timestamp '2023-01-01' as from_time, timestamp '2023-01-01' + to_seconds({span}) as to_time,
                true as is_covered
            from (select subject_key from tokens union all select subject_key from wallets)
            """,
            # Amounts of 18 to 22 digits, as of tokens with 18 decimals.
            f"""
            insert into marts_db.marts.token_activities by name
            select
                'ten' as tenant_id, subject_key, subject_id as token_id,
                'act_' || md5(subject_key || '|' || n) as activity_id, 'Transfer' as activity_type,
                'Finalized' as status, n as block_number, '0x' as block_hash,
                timestamp '2023-01-01' + to_seconds(n * {span} // {per_token}) as block_time, 0 as transaction_index,
                0 as log_index, '0x' as transaction_hash,
                ((1 + hash(n) % 10000)::varchar || lpad((hash(n + 1) % 1000000000000000000)::varchar, 18, '0'))::bignum
                    as amount_raw
            from tokens cross join range({per_token}) as numbers (n)
            order by subject_key, n
            """,
            f"""
            insert into marts_db.marts.balance_changes by name
            select
                'ten' as tenant_id, wallets.subject_key, 1 as range_from_block, tokens.address as token_address,
                wallets.address as holder_address, n * {span} // {size.changes_per_position} as block_number,
                timestamp '2023-01-01' + to_seconds(n * {span} // {size.changes_per_position}) as block_time,
                '0'::bignum as movement_raw,
                (
                    (1 + hash(n) % 10000)::varchar
                    || lpad((hash(n + tokens.subject_key) % 1000000000000000000)::varchar, 18, '0')
                )::bignum as balance_raw,
                true as is_moved, false as is_observed, false as is_checked, false as is_adjusted,
                'Observed' as opened_by,
                (n = 0)::tinyint as holder_change, n = 0 as is_first
            from wallets cross join tokens cross join range({size.changes_per_position}) as numbers (n)
            order by wallets.subject_key, n
            """,
            """
            insert into intermediate.int_balances_latest by name
            select
                subject_key, range_from_block, token_address, holder_address,
                arg_max(balance_raw, block_number) as balance_raw, 0 as adjustment_count
            from marts_db.marts.balance_changes
            group by subject_key, range_from_block, token_address, holder_address
            """,
            """
            insert into marts_db.marts.wallet_positions by name
            select
                'ten' as tenant_id, subject_key, token_address, 18 as token_decimals, balance_raw as quantity_raw,
                false as is_adjusted, 'Observed' as opened_by
            from intermediate.int_balances_latest
            """,
            f"""
            insert into marts_db.marts.system_prices by name
            select
                'ten' as tenant_id, tokens.subject_key as pair_key,
                timestamp '2023-01-01' + to_seconds(n * {span} // {size.prices_per_pair}) as valid_from,
                case when n + 1 < {size.prices_per_pair} then
                    timestamp '2023-01-01' + to_seconds((n + 1) * {span} // {size.prices_per_pair})
                end as valid_until,
                (1000 + (hash(n) % 100000) / 100)::decimal(18, 2)::decimal(38, 18) as price,
                'Priced' as price_status, 'src_one' as source_id, 0 as position, false as is_fallback,
                valid_from as effective_from, false as is_partial, 'Direct' as derivation
            from tokens cross join range({size.prices_per_pair}) as numbers (n)
            order by pair_key, valid_from
            """,
        ):
            connection.execute(statement)


def _change_price(stores: Stores, size: Size, step: int | None, number: int) -> None:
    """Change the price of one step of the first pair, and record the change like the price models."""
    with duckdb.connect(str(stores.warehouse)) as connection:
        connection.execute(f"attach '{stores.marts}' as marts_db")
        connection.execute("update raw.transforms set batch_id = batch_id + 1")
        connection.execute("delete from intermediate.int_changed_price_spans")
        if step is None:
            return
        span = size.days * _SECONDS_OF_A_DAY
        connection.execute(
            """
            insert into intermediate.int_changed_price_spans by name
            select pair_key, valid_from as from_time, valid_until as until_time,
                (select batch_id from raw.transforms) as since_batch_id
            from marts_db.marts.system_prices
            where pair_key = 1 and valid_from = timestamp '2023-01-01' + to_seconds(?)
            """,
            [step * span // size.prices_per_pair],
        )
        connection.execute(
            """
            update marts_db.marts.system_prices set price = ?
            where pair_key = 1 and valid_from = (select from_time from intermediate.int_changed_price_spans)
            """,
            [number + 1],
        )


def _end_day(stores: Stores, days: int) -> None:
    """Let everything be collected to the end of one more day."""
    with duckdb.connect(str(stores.warehouse)) as connection:
        connection.execute(f"attach '{stores.marts}' as marts_db")
        connection.execute("update raw.transforms set batch_id = batch_id + 1")
        for table, column in (("tokens", "as_of_block_time"), ("wallets", "as_of_block_time"), ("coverage", "to_time")):
            connection.execute(
                f"update marts_db.marts.{table} set {column} = timestamp '2023-01-01' + to_days(?)", [days]
            )


def _spoil(stores: Stores) -> None:
    """Mark the stored rows, so that rewritten ones can be recognised."""
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stores.marts}' as marts_db")
        for mart in ("token_activity_values", "wallet_value_days"):
            connection.execute(f"update marts_db.marts.{mart} set value_approx = -1")


def _rewritten(stores: Stores) -> tuple[int, int]:
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stores.marts}' as marts_db (read_only)")
        counts = [
            connection.execute(f"select count(*) from marts_db.marts.{mart} where value_approx != -1").fetchone()
            for mart in ("token_activity_values", "wallet_value_days")
        ]
    return _first(counts[0]), _first(counts[1])


def _expect(stores: Stores, size: Size) -> None:
    wanted = {
        "token_activity_values where value_status = 'Priced'": size.activities // size.tokens * size.tokens,
        "wallet_value_days where value_complete": size.wallets * size.days,
    }
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stores.marts}' as marts_db (read_only)")
        for rows, count in wanted.items():
            found = _first(connection.execute(f"select count(*) from marts_db.marts.{rows}").fetchone())
            if found != count:
                raise RuntimeError(f"there are {found:,} rows of {rows}, not {count:,}")


def _first(row: Iterable[int] | None) -> int:
    assert row is not None
    return next(iter(row))
