-- How many holders match.
select count(*) as row_count
from holders
