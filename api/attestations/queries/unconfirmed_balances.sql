-- Number of a subject's balances at a block that no reading confirms, zero balances included, and whether its supply
-- was read at the block.
with balances as (

    select
        token_address,
        holder_address,
        arg_max(balance_raw, block_number) filter (where block_number <= $block_number) as balance_raw,
        {% include '_points_around.sql' %}
    from marts.balance_changes
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and range_from_block = $first_block
    group by token_address, holder_address

),

behaviours as (

    select
        null as token_address,
        behaviour
    from marts.tokens
    where subject_key = $subject_key and tenant_id = $tenant_id
    union all
    select
        token_address,
        behaviour
    from marts.wallet_behaviours
    where subject_key = $subject_key and tenant_id = $tenant_id

),

judged as (

    select
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
    left join behaviours
        on coalesce(behaviours.token_address, balances.token_address) = balances.token_address
    where balances.balance_raw is not null

)

select
    -- count_if returns null without rows.
    coalesce(count_if(confirming_block is null), 0) as balance_count,
    exists(
        select 1 from marts.supply_changes
        where
            subject_key = $subject_key
            and tenant_id = $tenant_id
            and block_number = $block_number
            and is_observed
    ) as is_supply_read
from judged
