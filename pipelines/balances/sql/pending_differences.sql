-- Adjustments of the last build of the models that happened in one of several blocks, the newest first. Each has the
-- last block with a balance that movements explain, the first block without, the balances according to movements in
-- between, and its tenants.
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
