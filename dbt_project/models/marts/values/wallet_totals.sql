-- Value of every wallet at its as-of block and 24 hours before, each from the positions that it held or may have held
-- then. The change is over the positions with a known value at both moments.
with

wallets as (

    select * from {{ ref('wallets') }}

),

coverage as (

    select * from {{ ref('coverage') }}

),

balances as (

    select * from {{ ref('wallet_positions') }}

),

unread as (

    select * from {{ ref('unread_balances') }}

),

changes as (

    select changes.*
    from {{ ref('balance_changes') }} as changes
    semi join wallets on changes.subject_key = wallets.subject_key

),

token_pairs as (

    select * from {{ ref('token_pairs') }}

),

prices as (

    select * from {{ ref('as_of_prices') }}

),

labels as (

    select * from {{ ref('int_tokens_labelled') }}

),

-- Several blocks may have the same time: then the range contains neither the next block nor the time of its last one.
held_ranges as (

    select
        subject_key,
        from_block,
        to_block,
        from_time,
        is_covered,
        {{ held_until_time() }} as held_until_time
    from coverage

),

before as (

    select
        wallets.subject_key,
        wallets.as_of_block_time - interval 24 hours as at_time,
        held_ranges.from_block as range_from_block,
        held_ranges.to_block = wallets.as_of_block_number as is_same_range
    from wallets
    inner join held_ranges
        on
            wallets.subject_key = held_ranges.subject_key
            and held_ranges.is_covered
            and held_ranges.from_time <= wallets.as_of_block_time - interval 24 hours
            and held_ranges.held_until_time > wallets.as_of_block_time - interval 24 hours

),

-- Earlier balances are looked up only if something changed since.
changed as (

    select distinct
        changes.subject_key,
        changes.token_address
    from changes
    inner join before
        on
            changes.subject_key = before.subject_key
            and (changes.block_time > before.at_time or not before.is_same_range)

),

looked_up as (

    select
        changes.subject_key,
        changes.token_address,
        max(changes.block_number) as block_number,
        any_value(changes.range_from_block) as range_from_block
    from changes
    semi join changed
        on
            changes.subject_key = changed.subject_key
            and changes.token_address = changed.token_address
    inner join before
        on
            changes.subject_key = before.subject_key
            and changes.range_from_block = before.range_from_block
            and changes.block_time <= before.at_time
    group by changes.subject_key, changes.token_address

),

positions as (

    select
        subject_key,
        false as is_before,
        token_address,
        quantity_raw
    from balances

    union all

    select
        balances.subject_key,
        true as is_before,
        balances.token_address,
        balances.quantity_raw
    from balances
    inner join before
        on
            balances.subject_key = before.subject_key
            and before.is_same_range
    anti join changed
        on
            balances.subject_key = changed.subject_key
            and balances.token_address = changed.token_address

    union all

    select
        changes.subject_key,
        true as is_before,
        changes.token_address,
        changes.balance_raw as quantity_raw
    from changes
    inner join looked_up
        on
            changes.subject_key = looked_up.subject_key
            and changes.range_from_block = looked_up.range_from_block
            and changes.token_address = looked_up.token_address
            and changes.block_number = looked_up.block_number
    where changes.balance_raw != 0::bignum

    union all

    select
        unread.subject_key,
        false as is_before,
        unread.token_address,
        null as quantity_raw
    from unread

    union all

    select
        unread.subject_key,
        true as is_before,
        unread.token_address,
        null as quantity_raw
    from unread
    inner join before
        on
            unread.subject_key = before.subject_key
            and before.is_same_range

),

valued as (

    select
        positions.subject_key,
        positions.is_before,
        positions.token_address,
        coalesce(labels.symbol, positions.token_address) as symbol,
        {{ to_value_units('positions.quantity_raw', 'labels.decimals', 'prices.price') }} as units,
        {{ value_status(
            'labels.decimals', 'token_pairs.pair_key', 'prices.price_status', 'positions.quantity_raw'
        ) }} as status
    from positions
    inner join wallets on positions.subject_key = wallets.subject_key
    left join labels
        on
            wallets.tenant_id = labels.tenant_id
            and wallets.network = labels.network
            and positions.token_address = labels.token_address
    left join token_pairs
        on
            positions.subject_key = token_pairs.subject_key
            and positions.token_address = token_pairs.token_address
    left join prices
        on
            token_pairs.pair_key = prices.pair_key
            and case
                when positions.is_before then wallets.as_of_block_time - interval 24 hours
                else wallets.as_of_block_time
            end = prices.at_time

),

totals as (

    select
        subject_key,
        is_before,
        sum(units) filter (where status = 'Priced') as total_units,
        {{ total_columns() }}
    from valued
    group by subject_key, is_before

),

-- Each asset at both moments. An asset that is not held is worth 0, with or without a price.
paired as (

    select
        subject_key,
        token_address,
        any_value(symbol) as symbol,
        coalesce(any_value(units) filter (where not is_before), 0::bignum) as units,
        coalesce(any_value(units) filter (where is_before), 0::bignum) as units_24h,
        coalesce(
            any_value(status) filter (where status != 'Priced' and not is_before),
            any_value(status) filter (where status != 'Priced'),
            'Priced'
        ) as status
    from valued
    group by subject_key, token_address

),

compared as (

    select
        subject_key,
        coalesce(sum(units) filter (where status = 'Priced'), 0::bignum) as units,
        coalesce(sum(units_24h) filter (where status = 'Priced'), 0::bignum) as units_24h,
        {{ total_status() }} as status,
        coalesce(list(symbol order by symbol) filter (where status != 'Priced'), []) as omitted
    from paired
    group by subject_key

),

described as (

    select
        wallets.tenant_id,
        wallets.subject_key,
        wallets.as_of_block_time as as_of_time,
        case when wallets.as_of_block_time is not null then coalesce(now.total_status, 'Priced') else 'NotCovered' end
            as total_value_status,
        case when now.subject_key is not null then now.total_units else 0::bignum end as total_units,
        coalesce(now.is_complete, true) as is_complete,
        coalesce(now.unpriced, []) as unpriced,
        case when before.subject_key is not null then coalesce(earlier.total_status, 'Priced') else 'NotCovered' end
            as total_status_24h,
        case when earlier.subject_key is not null then earlier.total_units else 0::bignum end as total_units_24h,
        case when before.subject_key is not null then coalesce(compared.status, 'Priced') else 'NotCovered' end
            as compared_status,
        coalesce(compared.units, 0::bignum) as compared_units,
        coalesce(compared.units_24h, 0::bignum) as compared_units_24h,
        case when before.subject_key is not null then coalesce(compared.omitted, []) else [] end as change24h_omitted
    from wallets
    left join totals as now
        on
            wallets.subject_key = now.subject_key
            and not now.is_before
    left join before on wallets.subject_key = before.subject_key
    left join totals as earlier
        on
            wallets.subject_key = earlier.subject_key
            and earlier.is_before
    left join compared on wallets.subject_key = compared.subject_key

),

measured as (

    select
        tenant_id,
        subject_key,
        as_of_time,
        case when total_value_status = 'Priced' then {{ units_to_value('total_units') }} end as total_value,
        total_value_status,
        is_complete and as_of_time is not null as value_complete,
        unpriced,
        case when total_status_24h = 'Priced' then {{ units_to_value('total_units_24h') }} end as total_value_24h,
        case
            when compared_status = 'Priced'
                then {{ percentage('compared_units - compared_units_24h', 'compared_units_24h') }}
        end as change24h,
        case
            when compared_status != 'Priced' then compared_status
            when compared_units_24h = 0::bignum then 'ZeroBase'
            when len(change24h_omitted) > 0 then 'Partial'
            else 'Priced'
        end as change24h_status,
        change24h_omitted
    from described

)

select
    tenant_id,
    subject_key,
    as_of_time,
    total_value,
    total_value::double as total_value_approx,
    total_value_status,
    value_complete,
    unpriced,
    total_value_24h,
    total_value_24h::double as total_value_24h_approx,
    change24h,
    change24h::double as change24h_approx,
    change24h_status,
    change24h_omitted,
    {{ value_currency() }} as currency
from measured
order by subject_key
