-- Pairs of token and holder that moved inside a window and have no balance at the block before it. Of a window that
-- opens, all of its transfers count: another tenant's window may have brought some of them in earlier.
with seen as (
    select coalesce(max(batch_id), 0) as batch_id from raw.observed_batches where network = $network
),

ranges as (
    select
        subjects.kind,
        subjects.address,
        ranges.from_block,
        coalesce(ranges.to_block, $head) as to_block,
        case when opened.window_key is null then 0 else seen.batch_id end as seen_batch_id
    from raw.window_ranges as ranges
    inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
    left join raw.opened_windows as opened on ranges.window_key = opened.window_key
    cross join seen
    where subjects.network = $network and ranges.from_block > 0
),

new_transfers as (
    select transfers.*
    from raw.token_transfers as transfers
    where transfers.network = $network and transfers.batch_id > (select min(seen_batch_id) from ranges)
),

pairs as (
    select
        transfers.token_address,
        unnest([transfers.from_address, transfers.to_address]) as holder_address,
        ranges.from_block - 1 as block_number
    from new_transfers as transfers
    inner join ranges
        on ranges.kind = 'token' and transfers.token_address = ranges.address
        and transfers.block_number between ranges.from_block and ranges.to_block
        and transfers.batch_id > ranges.seen_batch_id
    union
    select
        transfers.token_address,
        ranges.address as holder_address,
        ranges.from_block - 1 as block_number
    from new_transfers as transfers
    inner join ranges
        on ranges.kind = 'wallet' and ranges.address in (transfers.from_address, transfers.to_address)
        and transfers.block_number between ranges.from_block and ranges.to_block
        and transfers.batch_id > ranges.seen_batch_id
)

select pairs.token_address, pairs.holder_address, pairs.block_number
from pairs
anti join raw.balance_observations as observations
    on observations.network = $network
    and pairs.token_address = observations.token_address
    and pairs.holder_address = observations.holder_address
    and pairs.block_number = observations.block_number
where pairs.holder_address != '0x0000000000000000000000000000000000000000';
