-- Pairs to read at the head, each with its tenants. Their views reach the head, and the pairs moved, or lost their
-- readings to a reorganisation.
with at_head as (
    select * from network_ranges
    where to_block >= $head
),

pairs as (
    select moved_pairs.token_address, moved_pairs.holder_address, moved_pairs.tenant_id
    from moved_pairs
    where moved_pairs.subject_key in (select subject_key from at_head)
    union
    select token_address, holder_address, tenant_id
    from raw.lost_readings
    where
        network = $network
        and (
            (tenant_id, token_address) in (select (tenant_id, address) from at_head where kind = 'token')
            or (tenant_id, holder_address) in (select (tenant_id, address) from at_head where kind = 'wallet')
        )
)

select token_address, holder_address, list(tenant_id order by tenant_id)
from pairs
group by token_address, holder_address;
