insert into raw.closed_ranges
select subject_key, from_block, to_block
from network_ranges
where is_ended and to_block < $head
except
select subject_key, from_block, to_block
from raw.closed_ranges;
