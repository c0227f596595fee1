-- Holders of suspected tokens that were not read since the suspicion of a tenant began, within its views that reach the
-- head. Each with these tenants.
with at_head as (
    select * from network_ranges
    where to_block >= $head
),

pending as (
    select
        observations.token_address,
        observations.holder_address,
        suspected.tenant_id,
        row_number() over (
            partition by suspected.tenant_id
            order by max(observations.block_number), observations.token_address, observations.holder_address
        ) as turn
    from raw.balance_observations as observations
    inner join raw.suspected_tokens as suspected
        on suspected.network = $network and observations.token_address = suspected.token_address
    where
        observations.network = $network
        and observations.visible_to[suspected.tenant_id] is not null
        and (
            (suspected.tenant_id, observations.token_address) in (
                select (tenant_id, address) from at_head where kind = 'token'
            )
            or (suspected.tenant_id, observations.holder_address) in (
                select (tenant_id, address) from at_head where kind = 'wallet'
            )
        )
    group by observations.token_address, observations.holder_address, suspected.tenant_id
    having max(observations.block_number) < max(suspected.since_block)
)

select token_address, holder_address, list(tenant_id order by tenant_id)
from pending
where turn <= $most
group by token_address, holder_address;
