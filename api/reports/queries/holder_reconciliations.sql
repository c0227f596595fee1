-- How many holders there are of each reconciliation.
select
    reconciliation,
    count(*) as holder_count
from holders
group by reconciliation
