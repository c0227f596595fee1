-- What some holders had at an earlier block, by rank; null where it is not known. Who had the same is missing.
select
    rank,
    before_raw
from before
where rank in (select unnest($ranks::bigint[]))
