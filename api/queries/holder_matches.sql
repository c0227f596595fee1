-- How many holders match.
select count(*) as row_count
from holders
where
    ($search is null or contains(holder_address, $search) or holder_address = any($named))
    and ($reconciliation is null or reconciliation = $reconciliation)
