with written as (
    select distinct transfers.block_number, transfers.log_index
    from raw.token_transfers as transfers
    where transfers.network = $network and transfers.batch_id = $batch
),

repeated as (
    select transfers.block_number, transfers.log_index
    from raw.token_transfers as transfers
    inner join written
        on transfers.block_number = written.block_number and transfers.log_index = written.log_index
    where
        transfers.network = $network
        and transfers.block_number >= (select min(block_number) from written)
    group by transfers.block_number, transfers.log_index
    having count(*) > 1
)

select count(*), any_value(format('block {}, log {}', block_number, log_index))
from repeated;
