insert into raw.closed_ranges
select subject_key, from_block, to_block
from network_ranges
where is_ended
except
select subject_key, from_block, to_block
from raw.closed_ranges;
