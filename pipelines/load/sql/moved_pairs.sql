-- Pairs of token and holder that moved inside a view and were not seen yet, by subject.
create or replace temp table moved_pairs as
with transfers as (
    select token_address, from_address, to_address, block_number, false as is_again
    from raw.token_transfers
    where network = $network and block_number >= $from_block
    union all
    select token_address, from_address, to_address, block_number, true as is_again
    from raw.token_transfers
    where network = $network and batch_id > $batch
),

of_tokens as (
    select ranges.subject_key, transfers.token_address, transfers.from_address, transfers.to_address
    from transfers
    inner join network_ranges as ranges
        on ranges.kind = 'token' and transfers.token_address = ranges.address
        and transfers.block_number between ranges.from_block and ranges.to_block
        and (transfers.is_again or ranges.has_new or transfers.block_number > ranges.opened_to_block)
)

select subject_key, token_address, from_address as holder_address
from of_tokens
where from_address != '0x0000000000000000000000000000000000000000'
union
select subject_key, token_address, to_address
from of_tokens
where to_address != '0x0000000000000000000000000000000000000000'
union
select ranges.subject_key, transfers.token_address, ranges.address
from transfers
inner join network_ranges as ranges
    on ranges.kind = 'wallet' and ranges.address in (transfers.from_address, transfers.to_address)
    and transfers.block_number between ranges.from_block and ranges.to_block
    and (transfers.is_again or ranges.has_new or transfers.block_number > ranges.opened_to_block);
