-- Pairs that moved in blocks that became final since the last cycle, where the view holds the final block.
with ranges as (
    select * from network_ranges
    where $final between from_block and to_block
),

transfers as (
    select transfers.token_address, transfers.from_address, transfers.to_address
    from raw.token_transfers as transfers
    where transfers.network = $network and transfers.block_number between $final_from and $final
),

native_parties as (
    select unnest([transactions.from_address, transactions.to_address]) as address
    from raw.transactions
    where transactions.network = $network and transactions.block_number between $final_from and $final
    union
    select unnest([transfers.from_address, transfers.to_address])
    from raw.internal_transfers as transfers
    where transfers.network = $network and transfers.block_number between $final_from and $final
),

pairs as (
    select transfers.token_address, unnest([transfers.from_address, transfers.to_address]) as holder_address
    from transfers
    inner join ranges on ranges.kind = 'token' and transfers.token_address = ranges.address
    union
    select transfers.token_address, ranges.address
    from transfers
    inner join ranges on ranges.kind = 'wallet' and ranges.address in (transfers.from_address, transfers.to_address)
    union
    select 'native', ranges.address
    from native_parties
    inner join ranges on ranges.kind = 'wallet' and native_parties.address = ranges.address
)

select pairs.token_address, pairs.holder_address
from pairs
anti join raw.balance_observations as observations
    on observations.network = $network
    and pairs.token_address = observations.token_address
    and pairs.holder_address = observations.holder_address
    and observations.block_number = $final
where pairs.holder_address != '0x0000000000000000000000000000000000000000';
