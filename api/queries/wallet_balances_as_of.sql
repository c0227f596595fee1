-- The last balance of each token at or before a block, since the covered range with that block began.
with balances as (

    select
        token_address,
        balance_raw,
        balance,
        is_observed
    from marts.balance_changes
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and block_number between $first_block - 1 and $block_number
    qualify row_number() over (partition by token_address order by block_number desc, window_key desc) = 1

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
    balances.token_address,
    coalesce(positions.token_id, moved_tokens.token_id) as token_id,
    coalesce(positions.token_symbol, moved_tokens.token_symbol) as token_symbol,
    balances.balance_raw::varchar as quantity_raw,
    balances.balance as quantity,
    case when balances.is_observed then 'Reconciled' else 'Unchecked' end as reconciliation
from balances
left join positions on balances.token_address = positions.token_address
left join moved_tokens on balances.token_address = moved_tokens.token_address
where balances.balance_raw <> 0::bignum
order by balances.token_address
