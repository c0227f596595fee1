-- Pairs that moved in blocks that became final since the last cycle, where the view holds the final block.
with ranges as (
    select * from network_ranges
    where $final between from_block and to_block
),

pairs as (
    select distinct parties.asset as token_address, parties.holder_address
    from raw.movement_parties as parties
    inner join ranges on parties.subject_kind = ranges.kind and parties.address = ranges.address
    where parties.network = $network and parties.block_number between $final_from and $final
)

select pairs.token_address, pairs.holder_address
from pairs
anti join raw.balance_observations as observations
    on observations.network = $network
    and pairs.token_address = observations.token_address
    and pairs.holder_address = observations.holder_address
    and observations.block_number = $final;
