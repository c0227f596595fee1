-- Tokens and wallets in a window that reaches the head.
select distinct subjects.kind, subjects.address
from raw.window_ranges as ranges
inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
where
    subjects.network = $network
    and ranges.from_block <= $head
    and coalesce(ranges.to_block, $head) >= $head;
