{{ config(materialized='view') }}

-- Adjustments that happened in one of several blocks, with the balances between: what readings in between are held
-- against. Not of tokens that change balances by rule. A wallet says little of a token: one whose balance was adjusted
-- more than three times is taken for such a token too.
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
        and {{ keyed_address_key('points') }} not in ({{ supply_key() }}, {{ native_key() }})

),

pairs as (

    select pairs.*
    from {{ ref('int_balances_latest') }} as pairs
    semi join adjustments on pairs.subject_key = adjustments.subject_key
    where pairs.holder_address != {{ supply_holder() }}

),

readings as (

    select
        pairs.subject_key,
        {{ behaviour_counts('pairs') }}
    from pairs
    where pairs.reading_count > 0
    group by pairs.subject_key

),

balances as (

    select points.*
    from {{ ref('int_balance_points') }} as points
    semi join adjustments on {{ is_same_row('points', 'adjustments') }}

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
    where
        explained.explained_to_block < explained.block_number - 1
        and case subjects.kind
            when 'token' then coalesce({{ behaviour('readings') }}, '') not in ('Rebasing', 'FeeOnTransfer')
            else pairs.adjustment_count <= 3
        end

)

select * from final
