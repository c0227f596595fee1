-- Balances at the last block of ranges that ended before the head: of every pair that moved in them, and of wallets'
-- native asset. Each with the tenants without this reading.
with ended as (
    select * from network_ranges as ranges
    where
        is_ended
        and not exists (
            select 1 from raw.closed_ranges as closed
            where
                closed.subject_key = ranges.subject_key
                and closed.from_block = ranges.from_block
                and closed.to_block = ranges.to_block
        )
),

pairs as (
    select parties.asset as token_address, parties.holder_address, ended.to_block, ended.tenant_id
    from ended
    inner join raw.movement_parties as parties
        on parties.network = $network and parties.asset != 'native'
        and ended.kind = parties.subject_kind and ended.address = parties.address
        and parties.block_number between ended.from_block and ended.to_block
    union
    select 'native', address, to_block, tenant_id
    from ended
    where kind = 'wallet'
)

select
    pairs.token_address,
    pairs.holder_address,
    pairs.to_block as block_number,
    list(distinct pairs.tenant_id order by pairs.tenant_id)
from pairs
left join raw.balance_observations as observations
    on observations.network = $network
    and pairs.token_address = observations.token_address
    and pairs.holder_address = observations.holder_address
    and pairs.to_block = observations.block_number
where observations.visible_to[pairs.tenant_id] is null
group by pairs.token_address, pairs.holder_address, pairs.to_block;
