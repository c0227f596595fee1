-- Transactions that moved a token in its view, in order, after the last one that the search read. `sender` comes from
-- stored transactions of wallets.
with next as (
    select distinct block_number, transaction_position, transaction_hash
    from raw.movements
    where
        network = $network
        and asset = $token
        and block_number between greatest($first, $block) and $last
        and (block_number, transaction_position) > ($block, $position)
    order by block_number, transaction_position
    limit $most
)

select next.block_number, next.transaction_position, next.transaction_hash, any_value(fees.from_address)
from next
left join raw.movements as fees
    on fees.network = $network
    and fees.asset = 'native'
    and fees.kind = 'Fee'
    and next.block_number = fees.block_number
    and next.transaction_hash = fees.transaction_hash
group by next.block_number, next.transaction_position, next.transaction_hash
order by next.block_number, next.transaction_position;
