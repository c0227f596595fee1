{{
    config(
        materialized='appended_table',
        meta={'partition_by_blocks': 'stg_chain__movements'},
        pre_hook=[
            "{{ delete_ahead() }}",
            "{{ delete_touched_adjustments('touched.holder_address = coalesce(written.to_address, written.from_address)') }}",
            "{{ finalize_activities() }}",
        ],
    )
}}

-- depends_on: {{ ref('int_balances_to_recompute') }}, {{ ref('int_frontier') }}, {{ ref('stg_pipeline__transforms') }}
with

subjects as (

    select * from {{ ref('stg_control__subjects') }}
    where kind = 'token'

),

covered_ranges as (

    select * from {{ ref('int_covered_ranges') }}
    where kind = 'token'

),

labels as (

    select * from {{ ref('int_tokens_labelled') }}

),

movements as (

    select movements.*
    from {{ rows_ahead(ref('stg_chain__movements')) }} as movements
    where {{ is_in_stretch('movements') }}

),

points as (

    select points.*
    from ({{ written_points() }}) as points
    where
        points.adjustment_raw is not null
        and points.holder_address != {{ supply_holder() }}
        and {{ is_in_stretch('points') }}

),

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

heads as (

    select * from {{ ref('stg_pipeline__visible_heads') }}

),

moved as (

    select
        covered_ranges.subject_key,
        movements.kind as activity_type,
        movements.network,
        movements.block_number,
        movements.transaction_position as transaction_index,
        movements.entry_position as log_index,
        movements.transaction_hash,
        movements.asset as token_address,
        coalesce(movements.from_address, movements.nobody_address) as from_address,
        coalesce(movements.to_address, movements.nobody_address) as to_address,
        movements.amount_raw,
        '' as holder_address,
        null::boolean as is_located
    from movements
    inner join covered_ranges
        on
            movements.network = covered_ranges.network
            and movements.asset = covered_ranges.address
            and movements.block_number between covered_ranges.from_block and covered_ranges.to_block
    {%- if is_incremental_model() %}
    inner join {{ ref('int_frontier') }} as frontier
        on
            covered_ranges.subject_key = frontier.subject_key
            and covered_ranges.from_block = frontier.range_from_block
            and movements.block_number >= frontier.from_block
    {%- endif %}

),

adjustments as (

    select
        points.subject_key,
        'Adjustment' as activity_type,
        subjects.network,
        points.block_number,
        -1 as transaction_index,
        -1 as log_index,
        null::varchar as transaction_hash,
        points.token_address,
        case when points.adjustment_raw < 0::bignum then points.holder_address end as from_address,
        case when points.adjustment_raw > 0::bignum then points.holder_address end as to_address,
        case
            when points.adjustment_raw < 0::bignum then 0::bignum - points.adjustment_raw
            else points.adjustment_raw
        end as amount_raw,
        points.holder_address,
        points.is_located
    from points
    inner join subjects on points.subject_key = subjects.subject_key

),

activities as (

    select * from moved
    union all
    select * from adjustments

),

described as (

    select
        subjects.tenant_id,
        activities.subject_key,
        subjects.subject_id as token_id,
        'act_' || md5(concat_ws(
            '|',
            activities.network,
            blocks.block_hash,
            activities.activity_type,
            activities.transaction_index,
            activities.log_index,
            subjects.subject_id,
            activities.token_address,
            activities.holder_address
        )) as activity_id,
        activities.activity_type,
        case
            when activities.block_number <= heads.final_number then 'Finalized'
            else 'Confirmed'
        end as status,
        activities.block_number,
        blocks.block_hash,
        blocks.block_time,
        activities.transaction_index,
        activities.log_index,
        activities.transaction_hash,
        activities.from_address,
        activities.to_address,
        activities.amount_raw,
        {{ to_amount('activities.amount_raw', 'labels.decimals') }} as amount,
        activities.is_located
    from activities
    inner join subjects on activities.subject_key = subjects.subject_key
    left join blocks
        on
            activities.network = blocks.network
            and activities.block_number = blocks.block_number
    left join labels
        on
            subjects.tenant_id = labels.tenant_id
            and activities.network = labels.network
            and activities.token_address = labels.token_address
    left join heads on activities.subject_key = heads.subject_key
    where not coalesce(labels.is_not_fungible, false)

),

final as (

    select
        *,
        amount::double as amount_approx
    from described

)

select * from final
order by subject_key, block_number, transaction_index, log_index
