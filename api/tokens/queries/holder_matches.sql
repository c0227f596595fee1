-- Holders that match, with their ranks: `holders` of other queries.
select *
from holders
where
    ($search is null or contains(holder_address, $search) or holder_address = any($named))
    and ($reconciliation is null or reconciliation = $reconciliation)
