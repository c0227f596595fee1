-- Number of matching holders.
select count(*) as row_count
from holders
