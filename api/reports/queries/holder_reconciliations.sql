-- Number of holders by reconciliation.
select
    reconciliation,
    count(*) as holder_count
from holders
group by reconciliation
