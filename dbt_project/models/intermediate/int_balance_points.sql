{{
    config(
        materialized='incremental',
        incremental_strategy='append',
        on_schema_change='fail',
        pre_hook=[
            "{{ delete_gone_ranges() }}",
            "{{ delete_reset_subjects() }}",
            "{{ delete_touched_balances() }}",
        ],
    )
}}

-- Balances of every pair after each block with a movement or a reading. The offset of a reading is what the movements
-- of the range do not explain; it holds until the next reading. Before the first reading it is 0 where the range began
-- no later than the contract; elsewhere it is that of the first reading, unless a balance would open below zero.
with

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

creations as (

    select * from {{ ref('stg_chain__token_creations') }}

),

inputs as (

    select
        inputs.*,
        -- Where no beginning is known, a token is not older than the first block.
        inputs.token_address != 'native'
        and inputs.range_from_block <= coalesce(creations.block_number, 1) as begins_before_token
    from {{ ref('int_balance_inputs') }} as inputs
    inner join subjects on inputs.subject_key = subjects.subject_key
    left join creations
        on
            subjects.network = creations.network
            and inputs.token_address = creations.token_address

),

cumulated as (

    select
        *,
        sum(movement_raw) over pair as cumulative_raw
    from inputs
    window pair as (
        partition by subject_key, range_from_block, token_address, holder_address
        order by block_number
        rows unbounded preceding
    )

),

compared as (

    select
        *,
        observed_raw - cumulative_raw as own_offset_raw
    from cumulated

),

opened as (

    select
        * exclude (opened_by),
        first_value(own_offset_raw ignore nulls) over whole as first_offset_raw,
        first_value(offset_block ignore nulls) over whole as first_offset_block,
        case
            when first_value(opened_by ignore nulls) over whole is not null
                then first_value(opened_by ignore nulls) over whole
            when first_value(offset_block ignore nulls) over whole = range_from_block - 1 then 'Observed'
            when begins_before_token then 'Creation'
            when first_value(offset_block ignore nulls) over whole is not null then 'Derived'
        end as opened_by
    from compared
    window
        whole as (
            partition by subject_key, range_from_block, token_address, holder_address
            order by block_number
            rows between unbounded preceding and unbounded following
        )

),

anchored as (

    select
        *,
        case
            when opened_by = 'Creation' or (opened_by = 'Derived' and first_offset_raw < 0::bignum) then 0::bignum
            when opened_by = 'Derived' then first_offset_raw
        end as opening_raw,
        case
            when opened_by = 'Creation' then range_from_block - 1
            when opened_by = 'Derived' then first_offset_block
        end as opening_block
    from opened

),

spread as (

    select
        *,
        row_number() over until_now = 1 as is_first,
        coalesce(last_value(own_offset_raw ignore nulls) over before, opening_raw) as previous_offset_raw,
        last_value(offset_block ignore nulls) over before as previous_offset_block,
        last_value(moved_block ignore nulls) over until_now as last_moved_block,
        coalesce(
            last_value(read_raw ignore nulls) over before,
            case when opened_by = 'Creation' then 0::bignum end
        ) as previous_read_raw,
        last_value(read_raw ignore nulls) over until_now as last_read_raw,
        coalesce(last_value(own_offset_raw ignore nulls) over until_now, opening_raw) as offset_raw,
        coalesce(last_value(offset_block ignore nulls) over until_now, opening_block) as spread_offset_block
    from anchored
    window
        before as (
            partition by subject_key, range_from_block, token_address, holder_address
            order by block_number
            rows between unbounded preceding and 1 preceding
        ),
        until_now as (
            partition by subject_key, range_from_block, token_address, holder_address
            order by block_number
            rows between unbounded preceding and current row
        )

),

adjusted as (

    select
        *,
        cumulative_raw + offset_raw as balance_raw,
        -- Null when the movements explain the reading, or when it opens the range.
        case when own_offset_raw != previous_offset_raw then own_offset_raw - previous_offset_raw end as adjustment_raw
    from spread
    where not is_carried

),

points as (

    select
        subject_key,
        range_from_block,
        token_address,
        holder_address,
        block_number,
        is_moved,
        movement_raw,
        cumulative_raw,
        observed_raw,
        observation_purpose,
        offset_raw,
        last_read_raw as read_raw,
        last_moved_block as moved_block,
        spread_offset_block as offset_block,
        opened_by,
        balance_raw,
        adjustment_raw,
        is_first,
        -- The balance before is what is left of this one without what changed it; before the first row there is none.
        (
            (balance_raw != 0::bignum)::tinyint
            - (
                not is_first
                and balance_raw - movement_raw - coalesce(adjustment_raw, 0::bignum) != 0::bignum
            )::tinyint
        )::tinyint as holder_change,
        -- Whether nothing moved since the reading before, or the opening.
        case
            when own_offset_raw != previous_offset_raw
                then coalesce(last_moved_block <= coalesce(previous_offset_block, range_from_block - 1), true)
        end as is_resting,
        -- Whether the balance at the end of the block before is known too, so that it changed in this one.
        case
            when own_offset_raw != previous_offset_raw
                then coalesce(
                    coalesce(previous_offset_block, case when opened_by = 'Creation' then opening_block end)
                    = block_number - 1,
                    false
                )
        end as is_located,
        -- Whether something moved, it was said, and the balance is the one before all the same.
        case when own_offset_raw != previous_offset_raw then observed_raw = previous_read_raw end as is_ignored
    from adjusted

)

select * from points
order by subject_key, range_from_block, block_number
