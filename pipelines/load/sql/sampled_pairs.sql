-- The next few of the pairs that were read before, in turn, as far as their subjects' views reach the head.
with at_head as (
    select * from network_ranges
    where to_block >= $head
)

select distinct observations.token_address, observations.holder_address
from raw.balance_observations as observations
where
    observations.rowid between $first and $last
    and observations.network = $network
    and observations.token_address != 'native'
    and (
        observations.token_address in (select address from at_head where kind = 'token')
        or observations.holder_address in (select address from at_head where kind = 'wallet')
    );
