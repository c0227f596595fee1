select
    coalesce(sum(amount_raw) filter (where activity_type = 'Mint'), 0::bignum)::varchar as minted_raw,
    coalesce(sum(amount_raw) filter (where activity_type = 'Burn'), 0::bignum)::varchar as burnt_raw
from marts.token_activities
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number > $block_number
    and block_number <= $last_block
