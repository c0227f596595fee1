-- Adjustments that happened in one of several blocks, the newest first, as the last build of the models knows them: the
-- block until which movements explain the balance, the one at which they do not, the balances that they make in between,
-- and the tenants whose they are.
select
    token_address,
    holder_address,
    explained_to_block,
    block_number,
    coalesce(any_value([(one.block_number, one.balance_raw::varchar) for one in balances if one.block_number >= explained_to_block]), []),
    list(distinct tenant_id order by tenant_id)
from requests.requests__readings
where network = $network and block_number <= $head and not is_located
group by token_address, holder_address, explained_to_block, block_number
order by block_number desc, token_address, holder_address
limit $most;
