-- Pairs of token and holder that moved since the last complete observation and are in a window that reaches the head.
with seen as (
    select coalesce(max(batch_id), 0) as batch_id from raw.observed_batches where network = $network
),

ranges as (
    select subjects.kind, subjects.address
    from raw.window_ranges as ranges
    inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
    where
        subjects.network = $network
        and ranges.from_block <= $head
        and coalesce(ranges.to_block, $head) >= $head
),

new_transfers as (
    select transfers.*
    from raw.token_transfers as transfers, seen
    where transfers.network = $network and transfers.batch_id > seen.batch_id
),

pairs as (
    select transfers.token_address, unnest([transfers.from_address, transfers.to_address]) as holder_address
    from new_transfers as transfers
    inner join ranges on ranges.kind = 'token' and transfers.token_address = ranges.address
    union
    select transfers.token_address, ranges.address as holder_address
    from new_transfers as transfers
    inner join ranges
        on ranges.kind = 'wallet' and ranges.address in (transfers.from_address, transfers.to_address)
)

select pairs.token_address, pairs.holder_address
from pairs
anti join raw.balance_observations as observations
    on observations.network = $network
    and pairs.token_address = observations.token_address
    and pairs.holder_address = observations.holder_address
    and observations.block_number = $head
where pairs.holder_address != '0x0000000000000000000000000000000000000000';
