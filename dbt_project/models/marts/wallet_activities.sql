{{
    config(
        materialized='incremental',
        incremental_strategy='append',
        pre_hook=[
            "{{ delete_removed_subjects() }}",
            "{{ delete_changed_ranges() }}",
            "{{ delete_touched_adjustments('touched.token_address = written.token_address') }}",
            "{{ relink_tokens() }}",
        ],
    )
}}

with

subjects as (

    select * from {{ ref('stg_control__subjects') }}
    where kind = 'wallet'

),

covered_ranges as (

    select * from {{ ref('int_covered_ranges') }}
    where kind = 'wallet'

),

native_ranges as (

    select * from {{ ref('int_native_ranges') }}

),

listed_tokens as (

    select * from {{ ref('int_wallet_tokens_listed') }}

),

labels as (

    select * from {{ ref('int_tokens_labelled') }}

),

token_transfers as (

    select * from {{ recent_rows(ref('stg_chain__token_transfers'), is_incremental()) }}

),

transactions as (

    select * from {{ recent_rows(ref('stg_chain__transactions'), is_incremental()) }}

),

internal_transfers as (

    select * from {{ recent_rows(ref('stg_chain__internal_transfers'), is_incremental()) }}

),

points as (

    select * from {{ ref('int_balance_points') }}
    where adjustment_raw is not null

),

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

network_states as (

    select * from {{ ref('stg_chain__network_states') }}

),

sent_transfers as (

    select
        covered_ranges.subject_key,
        case
            when token_transfers.to_address = token_transfers.from_address then 'Self'
            when token_transfers.to_address = {{ zero_address() }} then 'Burn'
            else 'TransferOut'
        end as activity_type,
        case when token_transfers.to_address != token_transfers.from_address then 'Out' end as direction,
        false as is_failed,
        token_transfers.network,
        token_transfers.block_number,
        token_transfers.transaction_index,
        token_transfers.log_index,
        null::integer as trace_index,
        token_transfers.transaction_hash,
        token_transfers.to_address as counterparty_address,
        token_transfers.token_address,
        token_transfers.amount_raw
    from token_transfers
    inner join covered_ranges
        on
            token_transfers.network = covered_ranges.network
            and token_transfers.from_address = covered_ranges.address
            and token_transfers.block_number between covered_ranges.from_block and covered_ranges.to_block

),

received_transfers as (

    select
        covered_ranges.subject_key,
        case
            when token_transfers.from_address = {{ zero_address() }} then 'Mint'
            else 'TransferIn'
        end as activity_type,
        'In' as direction,
        false as is_failed,
        token_transfers.network,
        token_transfers.block_number,
        token_transfers.transaction_index,
        token_transfers.log_index,
        null::integer as trace_index,
        token_transfers.transaction_hash,
        token_transfers.from_address as counterparty_address,
        token_transfers.token_address,
        token_transfers.amount_raw
    from token_transfers
    inner join covered_ranges
        on
            token_transfers.network = covered_ranges.network
            and token_transfers.to_address = covered_ranges.address
            and token_transfers.block_number between covered_ranges.from_block and covered_ranges.to_block
    where token_transfers.from_address != token_transfers.to_address

),

-- A failed transaction moved nothing, and shows what it would have moved. Where the receipt does not say, the value is
-- not shown: the next reading books what it did. A transaction without value shows only when it failed.
sent_values as (

    select
        native_ranges.subject_key,
        case
            when transactions.to_address = transactions.from_address then 'Self'
            else 'TransferOut'
        end as activity_type,
        case
            when transactions.to_address = transactions.from_address then null
            else 'Out'
        end as direction,
        not transactions.is_success as is_failed,
        transactions.network,
        transactions.block_number,
        transactions.transaction_index,
        -1 as log_index,
        null::integer as trace_index,
        transactions.transaction_hash,
        coalesce(transactions.to_address, transactions.created_address) as counterparty_address,
        'native' as token_address,
        transactions.value_raw as amount_raw
    from transactions
    inner join native_ranges
        on
            transactions.network = native_ranges.network
            and transactions.from_address = native_ranges.address
            and transactions.block_number between native_ranges.from_block and native_ranges.to_block
    where
        transactions.is_success is not null
        and (transactions.value_raw > 0::bignum or not transactions.is_success)

),

received_values as (

    select
        native_ranges.subject_key,
        'TransferIn' as activity_type,
        'In' as direction,
        false as is_failed,
        transactions.network,
        transactions.block_number,
        transactions.transaction_index,
        -1 as log_index,
        null::integer as trace_index,
        transactions.transaction_hash,
        transactions.from_address as counterparty_address,
        'native' as token_address,
        transactions.value_raw as amount_raw
    from transactions
    inner join native_ranges
        on
            transactions.network = native_ranges.network
            and coalesce(transactions.to_address, transactions.created_address) = native_ranges.address
            and transactions.block_number between native_ranges.from_block and native_ranges.to_block
    where
        transactions.value_raw > 0::bignum
        and transactions.is_success
        and transactions.from_address != native_ranges.address

),

-- A fee that the receipt does not tell shows without an amount: what it took is in the next reading.
fees as (

    select
        native_ranges.subject_key,
        'Fee' as activity_type,
        'Out' as direction,
        false as is_failed,
        transactions.network,
        transactions.block_number,
        transactions.transaction_index,
        -1 as log_index,
        null::integer as trace_index,
        transactions.transaction_hash,
        null::varchar as counterparty_address,
        'native' as token_address,
        transactions.fee_raw as amount_raw
    from transactions
    inner join native_ranges
        on
            transactions.network = native_ranges.network
            and transactions.from_address = native_ranges.address
            and transactions.block_number between native_ranges.from_block and native_ranges.to_block
    where transactions.fee_raw is null or transactions.fee_raw > 0::bignum

),

-- Value that contracts sent on, as the node traced it.
internal_values as (

    select
        native_ranges.subject_key,
        'Internal' as activity_type,
        'Out' as direction,
        false as is_failed,
        internal_transfers.network,
        internal_transfers.block_number,
        internal_transfers.transaction_index,
        -1 as log_index,
        internal_transfers.trace_index,
        internal_transfers.transaction_hash,
        internal_transfers.to_address as counterparty_address,
        'native' as token_address,
        internal_transfers.amount_raw
    from internal_transfers
    inner join native_ranges
        on
            internal_transfers.network = native_ranges.network
            and internal_transfers.from_address = native_ranges.address
            and internal_transfers.block_number between native_ranges.from_block and native_ranges.to_block

    union all

    select
        native_ranges.subject_key,
        'Internal' as activity_type,
        'In' as direction,
        false as is_failed,
        internal_transfers.network,
        internal_transfers.block_number,
        internal_transfers.transaction_index,
        -1 as log_index,
        internal_transfers.trace_index,
        internal_transfers.transaction_hash,
        internal_transfers.from_address as counterparty_address,
        'native' as token_address,
        internal_transfers.amount_raw
    from internal_transfers
    inner join native_ranges
        on
            internal_transfers.network = native_ranges.network
            and internal_transfers.to_address = native_ranges.address
            and internal_transfers.block_number between native_ranges.from_block and native_ranges.to_block

),

movements as (

    select * from sent_transfers
    union all
    select * from received_transfers
    union all
    select * from sent_values
    union all
    select * from received_values
    union all
    select * from fees
    union all
    select * from internal_values

),

recent_movements as (

    select movements.*
    from movements
    {% if is_incremental() -%}
    semi join {{ ref('int_changed_ranges') }} as changed
        on
            movements.subject_key = changed.subject_key
            and movements.block_number between changed.from_block and changed.to_block
            and changed.reason != 'Observation'
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
        points.token_address,
        case
            when points.adjustment_raw < 0::bignum then 0::bignum - points.adjustment_raw
            else points.adjustment_raw
        end as amount_raw,
        points.is_located
    from points
    inner join subjects on points.subject_key = subjects.subject_key
    where {{ is_recent_point() }}

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
            when activities.block_number <= network_states.final_number then 'Finalized'
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
        case when activities.amount_raw is null then 'UnknownFee' else 'Known' end as amount_status
    from activities
    inner join subjects on activities.subject_key = subjects.subject_key
    left join blocks
        on
            activities.network = blocks.network
            and activities.block_number = blocks.block_number
    left join labels
        on
            activities.network = labels.network
            and activities.token_address = labels.token_address
    left join listed_tokens
        on
            activities.subject_key = listed_tokens.subject_key
            and activities.token_address = listed_tokens.token_address
    left join network_states on activities.network = network_states.network
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
