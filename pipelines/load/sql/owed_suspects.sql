-- Holders of tokens under suspicion that were not read since it arose, as far as the tokens' or the wallets' views reach
-- the head.
with at_head as (
    select * from network_ranges
    where to_block >= $head
)

select observations.token_address, observations.holder_address
from raw.balance_observations as observations
inner join raw.suspected_tokens as suspected
    on suspected.network = $network and observations.token_address = suspected.token_address
where
    observations.network = $network
    and (
        observations.token_address in (select address from at_head where kind = 'token')
        or observations.holder_address in (select address from at_head where kind = 'wallet')
    )
group by observations.token_address, observations.holder_address
having max(observations.block_number) < max(suspected.since_block)
order by max(observations.block_number)
limit $most;
