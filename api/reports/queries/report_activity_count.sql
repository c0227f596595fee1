-- Number of matching activities.
select count(*) as row_count
from ordered
