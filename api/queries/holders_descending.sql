-- Holders that match, from the greatest key on, equal keys by rank backwards. Which ones is found narrowly: all columns of a
-- million holders, sorted along, take three times as long.
with ranked as (

    select
        holder_address,
        reconciliation,
        row_number() over (order by quantity_raw desc, holder_address) as rank
    from holders

),

matching as (

    select
        holder_address,
        rank,
        case $sort when 'wallet' then holder_address when 'reconciliation' then reconciliation else '' end as sort_key
    from ranked
    where
        ($search is null or contains(holder_address, $search) or holder_address = any($named))
        and ($reconciliation is null or reconciliation = $reconciliation)

),

paged as (

    select *
    from matching
    where $after_rank is null or (sort_key, rank) < ($after_key, $after_rank)
    order by sort_key desc, rank desc
    limit $row_count offset $skipped

)

select
    paged.rank,
    paged.holder_address,
    holders.quantity_raw::varchar as quantity_raw,
    marts.to_amount(holders.quantity_raw, $decimals) as quantity,
    marts.percentage(holders.quantity_raw, $total_supply_raw::bignum) as percentage,
    holders.reconciliation,
    holders.checked_block_number,
    holders.opened_by
from paged
inner join holders on paged.holder_address = holders.holder_address
order by paged.sort_key desc, paged.rank desc
