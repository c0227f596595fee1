-- Holders that match, by a key and equal keys by rank, or all of it backwards. Which ones is found narrowly: all columns
-- of a million holders, sorted along, take three times as long.
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
    where
        $after_rank is null
        or if($is_descending, (sort_key, rank) < ($after_key, $after_rank), (sort_key, rank) > ($after_key, $after_rank))
    order by if($is_descending, null, sort_key), if($is_descending, sort_key, null) desc, if($is_descending, -rank, rank)
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
order by
    if($is_descending, null, paged.sort_key),
    if($is_descending, paged.sort_key, null) desc,
    if($is_descending, -paged.rank, paged.rank)
