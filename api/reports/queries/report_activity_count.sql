-- How many activities match.
select count(*) as row_count
from ordered
