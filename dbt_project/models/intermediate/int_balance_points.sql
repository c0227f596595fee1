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
-- of the range do not explain; it holds until the next reading, and backwards where there is no reading before.
with

inputs as (

    select * from {{ ref('int_balance_inputs') }}

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

spread as (

    select
        *,
        row_number() over until_now = 1 as is_first,
        last_value(own_offset_raw ignore nulls) over before as previous_offset_raw,
        last_value(offset_block ignore nulls) over before as previous_offset_block,
        last_value(moved_block ignore nulls) over until_now as last_moved_block,
        last_value(read_raw ignore nulls) over before as previous_read_raw,
        last_value(read_raw ignore nulls) over until_now as last_read_raw,
        coalesce(
            last_value(own_offset_raw ignore nulls) over until_now,
            first_value(own_offset_raw ignore nulls) over afterwards
        ) as offset_raw,
        coalesce(
            last_value(offset_block ignore nulls) over until_now,
            first_value(offset_block ignore nulls) over afterwards
        ) as spread_offset_block
    from compared
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
        ),
        afterwards as (
            partition by subject_key, range_from_block, token_address, holder_address
            order by block_number
            rows between 1 following and unbounded following
        )

),

adjusted as (

    select
        *,
        cumulative_raw + offset_raw as balance_raw,
        -- Null when the movements explain the reading, or when there is no reading before.
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
        -- Whether nothing moved since the reading before.
        case
            when own_offset_raw != previous_offset_raw then coalesce(last_moved_block <= previous_offset_block, true)
        end as is_resting,
        -- Whether something moved, it was said, and the balance is the one before all the same.
        case when own_offset_raw != previous_offset_raw then observed_raw = previous_read_raw end as is_ignored
    from adjusted

)

select * from points
order by subject_key, range_from_block, block_number
