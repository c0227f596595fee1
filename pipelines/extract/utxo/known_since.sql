-- The block after which all unspent outputs of an address are known. It is 0 if its coverage begins with the chain, else
-- the block of the latest scan in the coverage. Earlier scans of a wallet of keys may have had fewer addresses. Addresses
-- without coverage up to the given block have no row.
with covered as (
    select wanted.address, ranges.from_block
    from raw.coverage as ranges
    inner join wanted on ranges.address = wanted.address
    where
        ranges.network = $network
        and ranges.subject_kind = 'native'
        and $before between ranges.from_block and ranges.to_block
)

select
    covered.address,
    case when covered.from_block <= 1 then 0 else max(openings.scanned_block) end as known_since
from covered
left join raw.utxo_openings as openings
    on openings.network = $network
    and covered.address = openings.address
    and openings.output_index = -1
    and openings.block_number between covered.from_block and $before
group by covered.address, covered.from_block
having covered.from_block <= 1 or max(openings.scanned_block) is not null
