-- Pairs that moved in a view in blocks that became final since the last cycle, if the view contains the final block.
-- Each with the tenants without this reading.
with ranges as (
    select * from network_ranges
    where $final between from_block and to_block
),

pairs as (
    select distinct parties.asset as token_address, parties.holder_address, ranges.tenant_id
    from raw.movement_parties as parties
    inner join ranges
        on parties.subject_kind = ranges.kind and parties.address = ranges.address
        and parties.block_number >= ranges.from_block
    where
        parties.network = $network
        and parties.block_number between $final_from and $final
        and (
            parties.asset != 'native'
            or exists (
                select 1 from native_ranges as natives
                where
                    natives.subject_key = ranges.subject_key
                    and parties.block_number between natives.from_block and natives.to_block
            )
        )
)

select
    pairs.token_address,
    pairs.holder_address,
    list(distinct pairs.tenant_id order by pairs.tenant_id)
from pairs
left join raw.balance_observations as observations
    on observations.network = $network
    and pairs.token_address = observations.token_address
    and pairs.holder_address = observations.holder_address
    and observations.block_number = $final
where observations.visible_to[pairs.tenant_id] is null
group by pairs.token_address, pairs.holder_address;
