-- Tokens and wallets with a view that reaches the head, with the tenant.
select distinct kind, address, tenant_id
from network_ranges
where to_block >= $head;
