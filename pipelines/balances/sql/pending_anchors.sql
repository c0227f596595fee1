-- Balances at the block before covered ranges, each with the tenants without this reading. They are those of pairs that
-- moved, in every range of their subject. For a new range of a wallet, they are also its native asset, the network's
-- common tokens and its tenant's tokens. A token that is new to the tenant is read for all its wallets.
with ranges as (
    select *, opened_to_block is null as is_new
    from network_ranges
    where from_block > 0
),

own_tokens as (
    select
        tokens.tenant_id,
        tokens.address,
        opened.subject_key is null as is_new
    from raw.control_subjects as tokens
    left join raw.opened_ranges as opened
        on tokens.subject_key = opened.subject_key and opened.from_block = -1
    where tokens.network = $network and tokens.kind = 'token'
),

pairs as (
    select moved_pairs.token_address, moved_pairs.holder_address, ranges.from_block - 1 as block_number, ranges.tenant_id
    from moved_pairs
    inner join ranges on moved_pairs.subject_key = ranges.subject_key
    union
    select 'native', address, from_block - 1, tenant_id
    from ranges
    where kind = 'wallet' and is_new
    union
    select tokens.token_address, ranges.address, ranges.from_block - 1, ranges.tenant_id
    from ranges
    inner join raw.common_tokens as tokens on tokens.network = $network
    where ranges.kind = 'wallet' and ranges.is_new
    union
    select own_tokens.address, ranges.address, ranges.from_block - 1, ranges.tenant_id
    from ranges
    inner join own_tokens on ranges.tenant_id = own_tokens.tenant_id
    where ranges.kind = 'wallet' and (ranges.is_new or own_tokens.is_new)
)

select
    pairs.token_address,
    pairs.holder_address,
    pairs.block_number,
    list(distinct pairs.tenant_id order by pairs.tenant_id)
from pairs
left join raw.balance_observations as observations
    on observations.network = $network
    and pairs.token_address = observations.token_address
    and pairs.holder_address = observations.holder_address
    and pairs.block_number = observations.block_number
where observations.visible_to[pairs.tenant_id] is null
group by pairs.token_address, pairs.holder_address, pairs.block_number;
