-- How many holders match, and where the first of them by rank stand: one look at a million addresses, not two.
select
    count(*) as row_count,
    arg_min(rowid, rank, 1000) as places
from marts.cap_tables
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and ($search is null or contains(holder_address, $search) or holder_address = any($named))
    and ($reconciliation is null or reconciliation = $reconciliation)
