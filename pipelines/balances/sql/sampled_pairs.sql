-- A tenant's readings that follow its last sample, in turn. A column says if its views of them reach the head.
with at_head as (
    select * from network_ranges
    where tenant_id = $tenant and to_block >= $head
),

next as (
    select block_number, token_address, holder_address
    from raw.balance_observations
    where
        network = $network
        and token_address != 'native'
        and visible_to[$tenant] is not null
        and block_number >= $block
        and (block_number, token_address, holder_address) > ($block, $token, $holder)
    order by block_number, token_address, holder_address
    limit $most
)

select
    block_number,
    token_address,
    holder_address,
    token_address in (select address from at_head where kind = 'token')
    or holder_address in (select address from at_head where kind = 'wallet')
from next
order by block_number, token_address, holder_address;
