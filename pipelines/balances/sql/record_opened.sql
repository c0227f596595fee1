-- Every covered range of the network, as far as it goes now; and every token, as one of its tenant's wallets' holdings.
insert into raw.opened_ranges
select subject_key, from_block, to_block
from network_ranges
union all
select subject_key, -1, -1
from raw.control_subjects
where network = $network and kind = 'token';
