-- The supply of a token at a block with its status; no row if it is unknown.
with supply as (

    select
        arg_max(total_supply_raw, block_number) filter (where block_number <= $block_number) as total_supply_raw,
        arg_max(total_supply, block_number) filter (where block_number <= $block_number) as total_supply,
        arg_max(opened_by, block_number) filter (where block_number <= $block_number) as opened_by,
        {% include '_points_around.sql' %}
    from marts.supply_changes
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and range_from_block = $first_block

)

select
    supply.total_supply_raw::varchar as total_supply_raw,
    supply.total_supply,
    marts.supply_status(
        supply.total_supply_raw,
        marts.confirming_block(
            tokens.behaviour,
            $block_number,
            supply.moved_block,
            supply.checked_block,
            supply.next_changed_block,
            supply.next_checked_block,
            supply.next_adjusted_block
        )
    ) as supply_status,
    supply.opened_by
from supply
left join marts.tokens as tokens on tokens.subject_key = $subject_key and tokens.tenant_id = $tenant_id
where supply.total_supply_raw is not null
