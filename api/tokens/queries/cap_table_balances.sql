-- Balances of each holder at two moments, each in its own covered range; null if unknown, and 0 before the token's
-- creation. Changed holders have ranks by size and by address; others have neither change nor ranks. Other queries read
-- the result as `balances_at_both`.
with balances as (

    select
        holder_address,
        case
            when $is_before_creation then 0::bignum
            else arg_max(balance_raw, block_number) filter (
                where range_from_block = $before_first_block and block_number <= $before_block
            )
        end as before_raw,
        arg_max(balance_raw, block_number) filter (where range_from_block = $after_first_block) as after_raw
    from marts.balance_changes
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and range_from_block in ($before_first_block, $after_first_block)
        and block_number <= $after_block
    group by holder_address

),

differences as (

    select
        *,
        coalesce(after_raw, 0::bignum) - coalesce(before_raw, 0::bignum) as difference_raw
    from balances

),

compared as materialized (

    select
        holder_address,
        before_raw,
        after_raw,
        case when difference_raw < 0::bignum then 0::bignum - difference_raw else difference_raw end as size_raw,
        case
            when difference_raw = 0::bignum then null
            when coalesce(before_raw, 0::bignum) = 0::bignum then 'New'
            when coalesce(after_raw, 0::bignum) = 0::bignum then 'Gone'
            else 'Changed'
        end as change
    from differences

)

select
    holder_address,
    before_raw,
    after_raw,
    change,
    row_number() over (order by size_raw desc, holder_address) as size_rank,
    row_number() over (order by holder_address) as address_rank
from compared
where change is not null

union all

select
    holder_address,
    before_raw,
    after_raw,
    change,
    null as size_rank,
    null as address_rank
from compared
where change is null
