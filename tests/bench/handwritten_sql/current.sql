-- Current state of every subject from the newest balances: ranked holders, supplies, and figures of concentration.
-- Every range begins with its tokens, so a single reading shows the behaviour of a holder's balance.
create or replace temp table behaviours as
select
    views.network, views.address as token_address,
    bool_or(latest.checked_block is not null) and not bool_or(latest.is_adjusted) as is_standard
from latest_balances as latest
inner join views on latest.subject_key = views.subject_key
where views.kind = 'token'
group by views.network, views.address;

create or replace table cap_tables as
with supplies as (
    select subject_key, arg_max(total_supply_raw, block_number)::varchar::hugeint as supply
    from supply_changes
    group by subject_key
),

holders as (
    select
        views.tenant_id, latest.subject_key,
        row_number() over (
            partition by latest.subject_key order by latest.balance_raw desc, latest.holder_address
        ) as rank,
        latest.holder_address, latest.balance_raw as quantity_raw,
        shifted(latest.balance_raw::varchar, tokens.decimals) as quantity,
        latest.balance_raw::varchar::hugeint as held,
        supplies.supply,
        case
            when not coalesce(
                latest.checked_block = views.to_block
                or (behaviours.is_standard and latest.checked_block >= latest.moved_block),
                false
            ) then 'Unchecked'
            when latest.is_adjusted then 'Adjusted'
            else 'Reconciled'
        end as reconciliation,
        latest.checked_block as checked_block_number
    from latest_balances as latest
    inner join views on latest.subject_key = views.subject_key
    inner join supplies on latest.subject_key = supplies.subject_key
    inner join tokens on views.network = tokens.network and views.address = tokens.token_address
    left join behaviours on views.network = behaviours.network and views.address = behaviours.token_address
    where views.kind = 'token' and latest.balance_raw != 0::bignum
),

-- 100 * held / supply in units of 10^-12, in two steps of seven digits.
halved as (
    select *, held * 10000000 // supply as high, held * 10000000 % supply as high_rest from holders
),

divided as (
    select
        *,
        high * 10000000 + high_rest * 10000000 // supply as units,
        high_rest * 10000000 % supply as rest
    from halved
),

shares as (
    select *, shifted((units + rounded_up(units, rest, supply)::hugeint)::varchar, 12) as percentage from divided
)

select
    tenant_id, subject_key, rank, holder_address, quantity_raw, quantity, quantity::double as quantity_approx,
    percentage, percentage::double as percentage_approx, 'Observed' as percentage_status, reconciliation, checked_block_number, 'Creation' as opened_by
from shares
order by subject_key, rank;

create or replace table wallet_balances as
with balances as (
    select
        views.tenant_id, latest.subject_key, latest.token_address, tokens.token_id, tokens.symbol as token_symbol,
        tokens.decimals as token_decimals, latest.balance_raw as quantity_raw,
        shifted(latest.balance_raw::varchar, tokens.decimals) as quantity,
        case
            when not coalesce(
                latest.checked_block = views.to_block
                or (behaviours.is_standard and latest.checked_block >= latest.moved_block),
                false
            ) then 'Unchecked'
            when latest.is_adjusted then 'Adjusted'
            else 'Reconciled'
        end as reconciliation,
        latest.checked_block as checked_block_number
    from latest_balances as latest
    inner join views on latest.subject_key = views.subject_key
    inner join tokens on views.network = tokens.network and latest.token_address = tokens.token_address
    left join behaviours on views.network = behaviours.network and latest.token_address = behaviours.token_address
    where views.kind = 'wallet' and latest.balance_raw != 0::bignum
)

select
    tenant_id, subject_key, token_address, token_id, token_symbol, token_decimals, quantity_raw, quantity,
    quantity::double as quantity_approx, reconciliation, checked_block_number, 'Creation' as opened_by
from balances
order by subject_key, token_address;

-- Integers of the ratios before their last division, one row per token. Squares are computed in limbs of 15 digits.
create or replace table cap_table_integers as
with holders as (
    select
        *,
        sum(quantity_raw) over (partition by subject_key order by rank rows unbounded preceding) as running_raw,
        quantity_raw::varchar::hugeint // 1000000000000000 as high,
        quantity_raw::varchar::hugeint % 1000000000000000 as low
    from cap_tables
),

supplies as (
    select subject_key, arg_max(total_supply_raw, block_number) as total_supply_raw from supply_changes group by subject_key
)

select
    supplies.subject_key, supplies.total_supply_raw, count(*) as holder_count, sum(holders.quantity_raw) as held_raw,
    sum(holders.quantity_raw) filter (where holders.rank <= 10) as top10_raw,
    sum(holders.running_raw) as running_sum_raw,
    sum(holders.high * holders.high) as high_squares, sum(2 * holders.high * holders.low) as mixed_squares,
    sum(holders.low * holders.low) as low_squares,
    min(holders.rank) filter (where holders.running_raw + holders.running_raw > supplies.total_supply_raw) as nakamoto
from holders
inner join supplies on holders.subject_key = supplies.subject_key
group by supplies.subject_key, supplies.total_supply_raw;
