-- Contracts that a tenant configured (tracked or not), that are common on a network where it has a token or wallet, or that moved
-- in its views and were not seen yet, as far as their kind is not known to it; each with these tenants. Common tokens may rest
-- in a wallet and never be seen.
with subjects as (
    select distinct tenant_id, kind, address
    from raw.control_subjects
    where network = $network
),

owed as (
    select address as token_address, tenant_id from subjects
    where kind = 'token'
    union
    select tokens.token_address, subjects.tenant_id
    from raw.common_tokens as tokens
    cross join subjects
    where tokens.network = $network
    union
    select token_address, tenant_id from moved_pairs
    except
    select token_address, tenant_id
    from raw.token_metadata
    where network = $network and contract_status in ('Fungible', 'NotFungible')
)

select token_address, list(tenant_id order by tenant_id)
from owed
group by token_address
order by token_address;
