-- Matching holders with their ranks. Other queries read the result as `holders`.
select *
from holders
where
    ($search is null or contains(holder_address, $search) or holder_address = any($named))
    and ($reconciliation is null or reconciliation = $reconciliation)
