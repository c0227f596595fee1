-- Holders that match, from the least key on, equal keys by rank. Which ones is found narrowly: all columns of a
-- million holders, sorted along, take five times as long.
with matching as (

    select
        rowid as place,
        rank,
        case $sort when 'wallet' then holder_address when 'reconciliation' then reconciliation else '' end as sort_key
    from marts.cap_tables
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and ($search is null or contains(holder_address, $search) or holder_address = any($named))
        and ($reconciliation is null or reconciliation = $reconciliation)

),

paged as (

    select place
    from matching
    where $after_rank is null or (sort_key, rank) > ($after_key, $after_rank)
    order by sort_key, rank
    limit $row_count offset $skipped

)

select
    rank as position,
    rank,
    holder_address,
    quantity_raw::varchar as quantity_raw,
    quantity,
    percentage,
    reconciliation,
    checked_block_number,
    opened_by
from marts.cap_tables
where rowid in (select place from paged)
order by
    case $sort when 'wallet' then holder_address when 'reconciliation' then reconciliation else '' end,
    rank
