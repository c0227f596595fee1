-- Ranks are 1 to n without ties, so a page in either direction is a range of them.
select
    rank as position,
    rank,
    holder_address,
    quantity_raw::varchar as quantity_raw,
    quantity,
    percentage,
    reconciliation,
    checked_block_number,
    opened_by
from marts.cap_tables
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and rank between $first_rank and $last_rank
order by rank
