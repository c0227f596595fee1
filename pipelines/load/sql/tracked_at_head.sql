-- Tokens and wallets whose view reaches the head.
select distinct kind, address
from network_ranges
where to_block >= $head;
