-- Every covered range of the network up to its current end; and every token, since its tenant's wallets may hold it.
insert into raw.opened_ranges
select subject_key, from_block, to_block
from network_ranges
union all
select subject_key, -1, -1
from raw.control_subjects
where network = $network and kind = 'token';
