-- Tokens and wallets whose view reaches the head, with the tenant.
select distinct kind, address, tenant_id
from network_ranges
where to_block >= $head;
