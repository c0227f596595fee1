{{
    config(
        materialized='appended_table',
        pre_hook=[
            "{{ delete_ahead() }}",
            "{{ delete_touched_adjustments('touched.token_address = written.token_address') }}",
            "{{ finalize_activities() }}",
            "{{ relink_tokens() }}",
        ],
    )
}}

-- depends_on: {{ ref('int_balances_to_recompute') }}, {{ ref('int_frontier') }}, {{ ref('stg_pipeline__transforms') }}
with

subjects as (

    select * from {{ ref('stg_control__subjects') }}
    where kind = 'wallet'

),

ranges as (

    select
        subject_key,
        network,
        address,
        false as is_native,
        from_block,
        to_block
    from {{ ref('int_covered_ranges') }}
    where kind = 'wallet'

    union all

    select
        subject_key,
        network,
        address,
        true as is_native,
        from_block,
        to_block
    from {{ ref('int_native_ranges') }}

),

listed_tokens as (

    select * from {{ ref('int_wallet_tokens_listed') }}

),

labels as (

    select * from {{ ref('int_tokens_labelled') }}

),

-- A movement that may have failed is not shown: the next reading books its effect. A native transfer of 0 is shown only
-- if it failed, or if the movement is all that its transaction changes, with a fee of its own. Transfers to oneself and
-- failed movements have no row for the recipient.
sides as (

    select * from {{ rows_ahead(ref('stg_chain__movement_sides')) }}
    where
        is_failed is not null
        and (
            asset != 'native'
            or is_failed
            or amount_raw is null
            or amount_raw > 0::bignum
            or fee_status is not null
        )
        and (direction = 'Out' or not is_failed and from_address is distinct from to_address)

),

points as (

    select points.*
    from ({{ written_points() }}) as points
    where points.adjustment_raw is not null

),

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

heads as (

    select * from {{ ref('stg_pipeline__visible_heads') }}

),

seen as (

    select
        ranges.subject_key,
        case
            when sides.from_address = sides.to_address then 'Self'
            when sides.kind = 'Transfer' then 'Transfer' || sides.direction
            else sides.kind
        end as activity_type,
        case when sides.from_address = sides.to_address then null else sides.direction end as direction,
        sides.is_failed,
        sides.network,
        sides.block_number,
        sides.transaction_position as transaction_index,
        case when sides.kind = 'Internal' then -1 else sides.entry_position end as log_index,
        case when sides.kind = 'Internal' then sides.entry_position end as trace_index,
        sides.transaction_hash,
        case
            when sides.fee_status is null then sides.counterparty_address
            when sides.counterparty_count = 1 then sides.counterparties[1]
        end as counterparty_address,
        sides.counterparties,
        case
            when sides.fee_status is null then (sides.counterparty_address is not null)::integer
            else sides.counterparty_count
        end as counterparty_count,
        sides.asset as token_address,
        sides.amount_raw,
        sides.fee_raw,
        coalesce(sides.fee_status, 'Separate') as fee_status,
        sides.detail
    from sides
    inner join ranges
        on
            sides.network = ranges.network
            and sides.holder_address = ranges.address
            and (sides.asset = 'native') = ranges.is_native
            and sides.block_number between ranges.from_block and ranges.to_block

),

recent_movements as (

    select seen.*
    from seen
    {% if is_incremental_model() -%}
    semi join {{ ref('int_frontier') }} as frontier
        on {{ is_ahead('seen') }}
    {% endif %}

),

adjustments as (

    select
        points.subject_key,
        case when points.token_address = 'native' then 'Internal' else 'Adjustment' end as activity_type,
        case when points.adjustment_raw < 0::bignum then 'Out' else 'In' end as direction,
        false as is_failed,
        subjects.network,
        points.block_number,
        -1 as transaction_index,
        -1 as log_index,
        null::integer as trace_index,
        null::varchar as transaction_hash,
        null::varchar as counterparty_address,
        null::varchar[] as counterparties,
        0 as counterparty_count,
        points.token_address,
        case
            when points.adjustment_raw < 0::bignum then 0::bignum - points.adjustment_raw
            else points.adjustment_raw
        end as amount_raw,
        null::bignum as fee_raw,
        'Separate' as fee_status,
        null::varchar as detail,
        points.is_located
    from points
    inner join subjects on points.subject_key = subjects.subject_key

),

activities as (

    select
        *,
        null::boolean as is_located
    from recent_movements
    union all
    select * from adjustments

),

described as (

    select
        subjects.tenant_id,
        activities.subject_key,
        subjects.subject_id as wallet_id,
        'act_' || md5(concat_ws(
            '|',
            activities.network,
            blocks.block_hash,
            activities.activity_type,
            activities.transaction_index,
            coalesce(activities.trace_index, activities.log_index),
            subjects.subject_id,
            activities.token_address
        )) as activity_id,
        activities.activity_type,
        activities.direction,
        case
            when activities.is_failed then 'Failed'
            when activities.block_number <= heads.final_number then 'Finalized'
            else 'Confirmed'
        end as status,
        activities.block_number,
        blocks.block_hash,
        blocks.block_time,
        activities.transaction_index,
        activities.log_index,
        activities.trace_index,
        activities.transaction_hash,
        activities.counterparty_address,
        activities.token_address,
        listed_tokens.token_id,
        labels.symbol as token_symbol,
        activities.amount_raw,
        {{ to_amount('activities.amount_raw', 'labels.decimals') }} as amount,
        activities.is_located,
        case when activities.amount_raw is null then 'UnknownFee' else 'Known' end as amount_status,
        activities.fee_raw,
        {{ to_amount('activities.fee_raw', 'labels.decimals') }} as fee,
        activities.fee_status,
        activities.counterparties,
        activities.counterparty_count,
        case
            when activities.counterparty_count is null then 'NotRead'
            when activities.counterparty_count > 1 then 'Several'
            when activities.counterparty_address is null then 'None'
            else 'Known'
        end as counterparty_status,
        activities.detail
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
    left join listed_tokens
        on
            activities.subject_key = listed_tokens.subject_key
            and activities.token_address = listed_tokens.token_address
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
order by subject_key, block_number, transaction_index, log_index, trace_index nulls first
