-- A block, if it is stored for a tenant's views: rows or range bounds of the views refer to it, or it was in the tail
-- of the chain while the subject was tracked. Other blocks are stored for other tenants.
with own_subjects as (

    select subject_key
    from marts.tokens
    where
        tenant_id = $tenant_id
        and network = $network

    union all

    select subject_key
    from marts.wallets
    where
        tenant_id = $tenant_id
        and network = $network

),

named as (

    select subject_key
    from marts.balance_changes
    where
        tenant_id = $tenant_id
        and block_number = $block_number

    union all

    select subject_key
    from marts.supply_changes
    where
        tenant_id = $tenant_id
        and block_number = $block_number

    union all

    select subject_key
    from marts.token_activities
    where
        tenant_id = $tenant_id
        and block_number = $block_number

    union all

    select subject_key
    from marts.wallet_activities
    where
        tenant_id = $tenant_id
        and block_number = $block_number

    union all

    select subject_key
    from marts.coverage
    where
        tenant_id = $tenant_id
        and is_covered
        and $block_number in (from_block, to_block)

),

tracked as (

    select
        unnest($opened_times::timestamp[]) as opened_at,
        unnest($closed_times::timestamp[]) as closed_at

)

select
    blocks.block_number,
    blocks.block_hash,
    blocks.block_time
from marts.blocks as blocks
where
    blocks.network = $network
    and blocks.block_number = $block_number
    and (
        exists(select 1 from named semi join own_subjects using (subject_key))
        or (
            blocks.is_tail
            and exists(
                select 1 from tracked
                where blocks.block_time >= tracked.opened_at and blocks.block_time < tracked.closed_at
            )
        )
    )
