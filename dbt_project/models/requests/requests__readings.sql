-- Balances and supplies that changed without a movement. Cycles narrow down the block of the change by further
-- readings, and read the rows of the blocks a second time. A located change happened in its block.
with

unlocated as (

    select * from {{ ref('int_unlocated_adjustments') }}

),

located as (

    select
        points.subject_key,
        subjects.tenant_id,
        subjects.network,
        pairs.token_address,
        pairs.holder_address,
        points.block_number - 1 as explained_to_block,
        points.block_number
    from {{ ref('int_balance_points') }} as points
    inner join {{ ref('int_balances_latest') }} as pairs on {{ is_same_row('points', 'pairs') }}
    inner join {{ ref('stg_control__subjects') }} as subjects on points.subject_key = subjects.subject_key
    where
        points.adjustment_raw is not null
        and points.is_located
        and {{ keyed_address_key('points') }} != {{ native_key() }}

),

final as (

    select
        subject_key,
        tenant_id,
        network,
        token_address,
        holder_address,
        explained_to_block,
        block_number,
        balances,
        false as is_located
    from unlocated
    union all
    select
        subject_key,
        tenant_id,
        network,
        token_address,
        holder_address,
        explained_to_block,
        block_number,
        null as balances,
        true as is_located
    from located

)

select * from final
