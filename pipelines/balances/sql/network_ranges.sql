-- The network's covered ranges with their subjects and the last block up to which they were opened. Computed once for
-- the other statements of an observation.
create or replace temp table network_ranges as
select
    covered.subject_key,
    subjects.kind,
    subjects.tenant_id,
    subjects.address,
    covered.from_block,
    covered.to_block,
    opened.to_block as opened_to_block,
    bool_or(opened.subject_key is null) over (partition by covered.subject_key) as has_new,
        -- The view does not continue before the head: the range will not grow.
    covered.to_block < $head and not exists (
        select 1 from raw.view_ranges as views
        where
            views.subject_key = covered.subject_key
            and views.from_block <= covered.to_block + 1
            and coalesce(views.to_block, covered.to_block + 1) > covered.to_block
    ) as is_ended
from raw.covered_ranges as covered
inner join raw.control_subjects as subjects on covered.subject_key = subjects.subject_key
left join raw.opened_ranges as opened
    on covered.subject_key = opened.subject_key and covered.from_block = opened.from_block
where subjects.network = $network and not covered.is_native;
