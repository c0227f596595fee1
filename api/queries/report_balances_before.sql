-- The last balance of some holders up to a block of a covered range; those that were not seen are missing.
with wanted as (

    select unnest($holders::varchar[]) as holder_address

)

select
    holder_address,
    arg_max(balance_raw, block_number)::varchar as balance_raw
from marts.balance_changes
semi join wanted using (holder_address)
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and range_from_block = $first_block
    and block_number <= $block_number
group by holder_address
