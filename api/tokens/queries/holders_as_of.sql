-- The holders of a token at a block with their ranks, 1 to n without ties. A holder has a balance other than zero in
-- the covered range of the block. A later reading confirms a balance if nothing moved in between. Other queries read
-- the result as `holders`.
with balances as (

    select
        holder_address,
        arg_max(balance_raw, block_number) filter (
            where range_from_block = $first_block and block_number <= $block_number
        ) as quantity_raw,
        {% include '_points_around.sql' %},
        coalesce(bool_or(is_adjusted) filter (where block_number <= $block_number), false) as is_adjusted,
        any_value(opened_by) filter (where range_from_block = $first_block) as opened_by
    from marts.balance_changes
    where subject_key = $subject_key and tenant_id = $tenant_id
    group by holder_address

),

confirmed as (

    select
        balances.*,
        marts.confirming_block(
            tokens.behaviour,
            $block_number,
            balances.moved_block,
            balances.checked_block,
            balances.next_changed_block,
            balances.next_checked_block,
            balances.next_adjusted_block
        ) as confirming_block
    from balances
    left join marts.tokens as tokens on tokens.subject_key = $subject_key and tokens.tenant_id = $tenant_id
    where balances.quantity_raw <> 0::bignum

),

held as (

    select
        holder_address,
        quantity_raw,
        marts.reconciliation(confirming_block, is_adjusted) as reconciliation,
        coalesce(confirming_block, checked_block) as checked_block_number,
        opened_by
    from confirmed

)

{% include '_ranked.sql' %}
