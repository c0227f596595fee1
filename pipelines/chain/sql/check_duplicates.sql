with written as (
    select distinct block_number, transaction_position, entry_position
    from raw.movements
    where network = $network and batch_id = $batch and asset != 'native'
),

repeated as (
    select movements.block_number, movements.transaction_position, movements.entry_position
    from raw.movements
    inner join written
        on movements.block_number = written.block_number
        and movements.transaction_position = written.transaction_position
        and movements.entry_position = written.entry_position
    where
        movements.network = $network
        and movements.asset != 'native'
        and movements.block_number >= (select min(block_number) from written)
    group by movements.block_number, movements.transaction_position, movements.entry_position
    having count(*) > 1
)

select count(*), any_value(format('block {}, transaction {}, entry {}', block_number, transaction_position, entry_position))
from repeated;
