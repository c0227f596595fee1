-- Tokens with a checked balance at the head but without a supply there: a cycle ended between the two readings. Each has
-- the tenants that see the balance and no supply.
with checked as (
    select distinct token_address, unnest(map_keys(visible_to)) as tenant_id
    from raw.balance_observations
    where network = $network and block_number = $head and purpose = 'Check'
)

select checked.token_address, list(checked.tenant_id order by checked.tenant_id)
from checked
left join raw.supply_observations as supplies
    on supplies.network = $network
    and checked.token_address = supplies.token_address
    and supplies.block_number = $head
where supplies.visible_to[checked.tenant_id] is null
group by checked.token_address;
