-- Blocks in which a balance that was read differs from the sum of its movements: the block itself if it is known, else
-- all blocks in which it may have changed. By subject; the network's own asset is not read a second time.
select distinct
    subjects.kind,
    subjects.address,
    readings.explained_to_block + 1 as from_block,
    readings.block_number as to_block
from requests.requests__readings as readings
inner join raw.control_subjects as subjects on readings.subject_key = subjects.subject_key
where readings.network = $network and readings.explained_to_block is not null;
