-- What each holder had at two moments, each in its own covered range; null where it is not known: `balances_at_both` of other
-- queries.
select
    holder_address,
    arg_max(balance_raw, block_number) filter (
        where range_from_block = $before_first_block and block_number <= $before_block
    ) as before_raw,
    arg_max(balance_raw, block_number) filter (where range_from_block = $after_first_block) as after_raw
from marts.balance_changes
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and range_from_block in ($before_first_block, $after_first_block)
    and block_number <= $after_block
group by holder_address
