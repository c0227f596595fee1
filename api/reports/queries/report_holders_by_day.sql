-- Change of the number of holders on each day of each covered range, up to a block.
select
    range_from_block,
    date_trunc('day', block_time) as day,
    sum(holder_change)::bigint as holder_change
from marts.balance_changes
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number <= $last_block
    and holder_change <> 0
group by range_from_block, day
order by range_from_block, day
