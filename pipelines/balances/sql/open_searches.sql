-- Tracked tokens with an unfinished search for holders, with their newest covered range.
select
    searched.subject_key,
    subjects.tenant_id,
    subjects.address,
    creations.block_number,
    max(covered.from_block),
    max(covered.to_block),
    searched.from_block,
    searched.from_position,
    searched.reading_count
from raw.searched_remainders as searched
inner join raw.control_subjects as subjects on searched.subject_key = subjects.subject_key
inner join raw.covered_ranges as covered on searched.subject_key = covered.subject_key
left join raw.token_creations as creations
    on searched.network = creations.network
    and subjects.address = creations.token_address
    and subjects.tenant_id = creations.tenant_id
where
    searched.network = $network
    and searched.from_block is not null
    and subjects.tenant_id not in (select tenant_id from raw.control_held_tenants)
group by all
order by min(searched.batch_id), searched.subject_key;
