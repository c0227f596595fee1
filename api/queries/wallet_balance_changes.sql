-- The last balance of each token in each interval, and before the first one (bucket null).
with changes as (

    select
        token_address,
        block_number,
        balance_raw,
        balance,
        case when block_time >= $from_time then date_trunc($unit, block_time) end as bucket
    from marts.balance_changes
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and block_number <= $last_block
        and block_time < $to_time
    qualify
        row_number() over (partition by token_address, bucket order by block_number desc, window_key desc) = 1

),

positions as (

    select
        token_address,
        token_id,
        token_symbol
    from marts.wallet_balances
    where subject_key = $subject_key and tenant_id = $tenant_id

),

moved_tokens as (

    select
        token_address,
        any_value(token_id) as token_id,
        any_value(token_symbol) as token_symbol
    from marts.wallet_activities
    where subject_key = $subject_key and tenant_id = $tenant_id
    group by token_address

)

select
    changes.token_address,
    coalesce(positions.token_id, moved_tokens.token_id) as token_id,
    coalesce(positions.token_symbol, moved_tokens.token_symbol) as token_symbol,
    changes.bucket,
    changes.block_number,
    changes.balance_raw::varchar as balance_raw,
    changes.balance
from changes
left join positions on changes.token_address = positions.token_address
left join moved_tokens on changes.token_address = moved_tokens.token_address
order by changes.token_address, changes.bucket nulls first
