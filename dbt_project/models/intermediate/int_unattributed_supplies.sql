{{ config(materialized='view') }}

-- Supply that no known holder has, of tokens without a possible balance before the newest covered range. No movement
-- names its holder. Tokens that change balances by rule are omitted.
with

views as (

    select * from {{ ref('int_covered_ranges') }}
    where
        kind = 'token'
        and is_as_of
        and not is_not_fungible

),

creations as (

    select * from {{ ref('stg_chain__token_creations') }}

),

balances as (

    select balances.*
    from {{ ref('int_balances_latest') }} as balances
    semi join views
        on
            balances.subject_key = views.subject_key
            and balances.range_from_block = views.from_block

),

supplies as (

    select * from balances
    where holder_address = {{ supply_holder() }}

),

-- Supplies with a reading of 0 at the block before the range.
supplies_of_nothing as (

    select points.balance_key
    from {{ ref('int_balance_points') }} as points
    semi join supplies on {{ is_same_row('points', 'supplies') }}
    where
        points.block_number = points.range_from_block - 1
        and points.observed_raw = 0::bignum

),

held as (

    select
        balances.subject_key,
        sum(balances.balance_raw) as held_raw
    from balances
    where balances.holder_address != {{ supply_holder() }}
    group by balances.subject_key

),

readings as (

    select
        pairs.subject_key,
        {{ behaviour_counts('pairs') }}
    from {{ ref('int_balances_latest') }} as pairs
    where
        pairs.reading_count > 0
        and pairs.holder_address != {{ supply_holder() }}
    group by pairs.subject_key

),

final as (

    select
        views.subject_key,
        views.network,
        supplies.balance_raw - coalesce(held.held_raw, 0::bignum) as remainder_raw
    from views
    inner join supplies on views.subject_key = supplies.subject_key
    left join creations
        on
            views.network = creations.network
            and views.tenant_id = creations.tenant_id
            and views.address = creations.token_address
    left join supplies_of_nothing on supplies.balance_key = supplies_of_nothing.balance_key
    left join held on views.subject_key = held.subject_key
    left join readings on views.subject_key = readings.subject_key
    where
        (
            views.from_block <= coalesce(creations.block_number, 1)
            or supplies.opened_by = 'Creation'
            or supplies_of_nothing.balance_key is not null
        )
        and coalesce({{ behaviour('readings') }}, '') not in ('Rebasing', 'FeeOnTransfer')

)

select * from final
where remainder_raw > 0::bignum
