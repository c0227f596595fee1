-- Subjects with rows in blocks that became final since the last cycle: their activities' status changes.
insert into raw.changes
with parties as (
    select subject_kind, address
    from raw.movement_parties
    where network = $network and block_number between $final_from and $final
    union
    -- Also what moved between nobody and nobody, which no party has a side of.
    select 'token', asset
    from raw.movements
    where network = $network and block_number between $final_from and $final and asset != 'native'
    union
    select 'token', token_address
    from raw.balance_observations
    where network = $network and block_number between $final_from and $final
    union
    select 'wallet', holder_address
    from raw.balance_observations
    where network = $network and block_number between $final_from and $final
)

select $batch, subjects.subject_key, $final_from, $final, 'Finality'
from raw.control_subjects as subjects
inner join parties on subjects.kind = parties.subject_kind and subjects.address = parties.address
where subjects.network = $network;
