{{ config(materialized='view') }}

-- Adjustments of balances and supplies that happened in one of several blocks, with the balances in between: cycles
-- compare further readings with them. Tokens that change balances by rule are omitted. A wallet's readings say little
-- of a token, so one with more than three adjustments of its balance counts as such a token too. A token with
-- supply changes in more than three known blocks counts too, if most of its readings differ.
with

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

adjustments as (

    select
        points.subject_key,
        points.range_from_block,
        points.balance_key,
        points.block_number,
        case points.opened_by when 'Creation' then points.range_from_block - 1 end as opening_block
    from {{ ref('int_balance_points') }} as points
    where
        points.is_located = false
        and {{ keyed_address_key('points') }} != {{ native_key() }}

),

pairs as (

    select pairs.*
    from {{ ref('int_balances_latest') }} as pairs
    semi join adjustments on pairs.subject_key = adjustments.subject_key

),

readings as (

    select
        pairs.subject_key,
        {{ behaviour_counts('pairs') }}
    from pairs
    where
        pairs.reading_count > 0
        and pairs.holder_address != {{ supply_holder() }}
    group by pairs.subject_key

),

balances as (

    select points.*
    from {{ ref('int_balance_points') }} as points
    semi join adjustments on {{ is_same_row('points', 'adjustments') }}

),

changing_supplies as (

    select balances.balance_key
    from balances
    where {{ keyed_address_key('balances') }} = {{ supply_key() }}
    group by balances.balance_key
    having
        count_if(balances.is_located) > 3
        and 2 * count(balances.adjustment_raw) > count(balances.observed_raw)

),

explained as (

    select
        adjustments.subject_key,
        adjustments.range_from_block,
        adjustments.balance_key,
        adjustments.block_number,
        coalesce(
            max(balances.block_number) filter (where balances.observed_raw is not null),
            any_value(adjustments.opening_block)
        ) as explained_to_block,
        list(
            { 'block_number': balances.block_number, 'balance_raw': balances.balance_raw }
            order by balances.block_number
        )
        filter (where balances.block_number is not null) as balances
    from adjustments
    left join balances
        on
            {{ is_same_row('adjustments', 'balances') }}
            and adjustments.block_number > balances.block_number
    group by
        adjustments.subject_key, adjustments.range_from_block, adjustments.balance_key, adjustments.block_number

),

final as (

    select
        explained.subject_key,
        subjects.tenant_id,
        subjects.network,
        pairs.token_address,
        pairs.holder_address,
        explained.explained_to_block,
        explained.block_number,
        explained.balances
    from explained
    inner join subjects on explained.subject_key = subjects.subject_key
    inner join pairs on {{ is_same_row('explained', 'pairs') }}
    left join readings on explained.subject_key = readings.subject_key
    left join changing_supplies on explained.balance_key = changing_supplies.balance_key
    where
        explained.explained_to_block < explained.block_number - 1
        and case subjects.kind
            when 'token' then coalesce({{ behaviour('readings') }}, '') not in ('Rebasing', 'FeeOnTransfer')
            else pairs.adjustment_count <= 3
        end
        and changing_supplies.balance_key is null

)

select * from final
