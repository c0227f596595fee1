-- Subjects with a view beyond the common ancestor: all their results after it are computed again.
insert into raw.changes
select distinct $batch::bigint, subjects.subject_key, $ancestor::bigint + 1, null::bigint, 'Reorganisation'
from raw.control_subjects as subjects
inner join raw.view_ranges as ranges on subjects.subject_key = ranges.subject_key
where
    subjects.network = $network
    and coalesce(ranges.to_block, $ancestor::bigint + 1) >= $ancestor::bigint;
