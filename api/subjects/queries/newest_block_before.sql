-- The newest block of a range before an instant that is stored for a subject's view: rows or range bounds of the view
-- refer to it, or it was in the tail of the chain while the subject was tracked. Other blocks are stored for other
-- tenants. The first row of a descending order takes a fifth of the time of max(), since DuckDB skips earlier blocks.
with stored as (

    (
        select block_number
        from marts.balance_changes
        where
            subject_key = $subject_key
            and tenant_id = $tenant_id
            and block_number between $first_block and $last_block
            and block_time < $end_time
        order by block_number desc
        limit 1
    )

    union all

    (
        select block_number
        from marts.supply_changes
        where
            subject_key = $subject_key
            and tenant_id = $tenant_id
            and block_number between $first_block and $last_block
            and block_time < $end_time
        order by block_number desc
        limit 1
    )

    union all

    (
        select block_number
        from marts.token_activities
        where
            subject_key = $subject_key
            and tenant_id = $tenant_id
            and block_number between $first_block and $last_block
            and block_time < $end_time
        order by block_number desc
        limit 1
    )

    union all

    (
        select block_number
        from marts.wallet_activities
        where
            subject_key = $subject_key
            and tenant_id = $tenant_id
            and block_number between $first_block and $last_block
            and block_time < $end_time
        order by block_number desc
        limit 1
    )

    union all

    select max(edges.block_number) as block_number
    from (
        select
            unnest([from_block, to_block]) as block_number,
            unnest([from_time, to_time]) as block_time
        from marts.coverage
        where
            subject_key = $subject_key
            and tenant_id = $tenant_id
            and is_covered
    ) as edges
    where
        edges.block_number between $first_block and $last_block
        and edges.block_time < $end_time

    union all

    select max(blocks.block_number) as block_number
    from marts.blocks as blocks
    semi join (
        select
            unnest($opened_times::timestamp[]) as opened_at,
            unnest($closed_times::timestamp[]) as closed_at
    ) as windows
        on
            blocks.block_time >= windows.opened_at
            and blocks.block_time < windows.closed_at
    where
        blocks.network = $network
        and blocks.is_tail
        and blocks.block_number between $first_block and $last_block
        and blocks.block_time < $end_time

)

select
    blocks.block_number,
    blocks.block_hash,
    blocks.block_time
from marts.blocks as blocks
where
    blocks.network = $network
    and blocks.block_number = (select max(stored.block_number) from stored)
