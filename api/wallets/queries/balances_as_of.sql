-- The last balance of each asset of a wallet at or before a block, within the covered range of that block, without zero
-- balances. A later reading confirms a balance if nothing moved in between. An asset without any reading in the range has
-- an unknown balance.
with balances as (

    select
        token_address,
        any_value(token_symbol) as token_symbol,
        arg_max(balance_raw, block_number) filter (
            where range_from_block = $first_block and block_number <= $block_number
        ) as balance_raw,
        arg_max(balance, block_number) filter (
            where range_from_block = $first_block and block_number <= $block_number
        ) as balance,
        {% include '_points_around.sql' %},
        coalesce(bool_or(is_adjusted) filter (where block_number <= $block_number), false) as is_adjusted,
        any_value(opened_by) filter (where range_from_block = $first_block) as opened_by
    from marts.balance_changes
    where subject_key = $subject_key and tenant_id = $tenant_id
    group by token_address

),

confirmed as (

    select
        balances.*,
        marts.confirming_block(
            behaviours.behaviour,
            $block_number,
            balances.moved_block,
            balances.checked_block,
            balances.next_changed_block,
            balances.next_checked_block,
            balances.next_adjusted_block
        ) as confirming_block
    from balances
    left join marts.wallet_behaviours as behaviours
        on
            behaviours.subject_key = $subject_key
            and behaviours.tenant_id = $tenant_id
            and balances.token_address = behaviours.token_address
    where balances.balance_raw <> 0::bignum

)

select
    token_address,
    token_symbol,
    balance_raw::varchar as quantity_raw,
    balance as quantity,
    marts.reconciliation(confirming_block, is_adjusted) as reconciliation,
    coalesce(confirming_block, checked_block) as checked_block_number,
    opened_by,
    null::varchar as unread_reason
from confirmed

union all by name

select
    token_address,
    token_symbol,
    'Unchecked' as reconciliation,
    reason as unread_reason
from marts.unread_balances
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and range_from_block = $first_block
order by token_address
