-- Subtracts orphaned rows from coverage beyond the common ancestor; runs before they are removed.
with parties as (
    select
        if(asset = 'native', 'native', subject_kind) as kind,
        address,
        block_number,
        transaction_position,
        entry_position
    from raw.movement_parties
    where network = $network and block_number > $ancestor
    union
    -- Movements without sender and recipient, too: they have no party.
    select 'token', asset, block_number, transaction_position, entry_position
    from raw.movements
    where network = $network and block_number > $ancestor and asset != 'native'
),

orphaned as (
    select coverage.subject_kind, coverage.address, coverage.from_block, count(*) as row_count
    from raw.coverage
    inner join parties
        on coverage.subject_kind = parties.kind and coverage.address = parties.address
        and parties.block_number between coverage.from_block and coverage.to_block
    where coverage.network = $network and coverage.to_block > $ancestor
    group by coverage.subject_kind, coverage.address, coverage.from_block
)

update raw.coverage
set row_count = coverage.row_count - orphaned.row_count
from orphaned
where
    coverage.network = $network
    and coverage.subject_kind = orphaned.subject_kind
    and coverage.address = orphaned.address
    and coverage.from_block = orphaned.from_block;
