-- Wallets with a view up to the head. `is_missing`: a tenant lost a reading, or lacks one of the first two. The second
-- one shows omissions of the first. `is_old`: the newest one is a day old.
with tracked as (
    select distinct subjects.tenant_id, subjects.address
    from raw.view_ranges as views
    inner join raw.control_subjects as subjects on views.subject_key = subjects.subject_key
    where
        subjects.network = $network
        and subjects.kind = 'wallet'
        and $head between views.from_block and coalesce(views.to_block, $head)
),

known as (
    select
        tracked.address,
        lost.holder_address is not null as is_lost,
        count(observations.block_number) as readings,
        max(observations.block_number) as block_number
    from tracked
    left join raw.lost_readings as lost
        on
            lost.network = $network
            and lost.token_address = 'native'
            and tracked.address = lost.holder_address
            and tracked.tenant_id = lost.tenant_id
    left join raw.balance_observations as observations
        on
            observations.network = $network
            and observations.token_address = 'native'
            and tracked.address = observations.holder_address
            and observations.visible_to[tracked.tenant_id] is not null
    group by tracked.tenant_id, tracked.address, is_lost
)

select
    known.address,
    bool_or(
        known.is_lost or known.readings = 0 or (known.readings = 1 and known.block_number < $head)
    ) as is_missing,
    coalesce(bool_or(blocks.block_time <= $day_ago), false) as is_old
from known
left join raw.blocks as blocks on blocks.network = $network and known.block_number = blocks.block_number
group by known.address
order by known.address;
