-- Blocks in which a balance that was read differs from the sum of its movements: the block itself if it is known, else
-- all blocks in which it may have changed. By subject; the network's own asset is not read a second time.
select distinct
    subjects.kind,
    subjects.address,
    points.block_number as from_block,
    points.block_number as to_block
from intermediate.int_balance_points as points
inner join intermediate.int_balances_latest as pairs
    on
        points.subject_key = pairs.subject_key
        and points.range_from_block = pairs.range_from_block
        and points.balance_key = pairs.balance_key
inner join raw.control_subjects as subjects on points.subject_key = subjects.subject_key
where
    subjects.network = $network
    and points.adjustment_raw is not null
    and points.is_located
    and pairs.token_address != 'native'
union all
select
    subjects.kind,
    subjects.address,
    adjustments.explained_to_block + 1,
    adjustments.block_number
from intermediate.int_unlocated_adjustments as adjustments
inner join raw.control_subjects as subjects on adjustments.subject_key = subjects.subject_key
where subjects.network = $network and adjustments.explained_to_block is not null;
