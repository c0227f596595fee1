-- Holders by quantity, the smallest first: those behind one, or behind so many. Ranks are 1 to n without ties, so the first
-- one of the page tells the others.
with paged as (

    select *
    from holders
    where
        $after_holder is null
        or quantity_raw > $after_quantity_raw::bignum
        or (quantity_raw = $after_quantity_raw::bignum and holder_address < $after_holder)
    order by quantity_raw asc, holder_address desc
    limit $row_count offset $skipped

)

select
    $first_rank - (row_number() over (order by quantity_raw asc, holder_address desc)) + 1 as rank,
    holder_address,
    quantity_raw::varchar as quantity_raw,
    marts.to_amount(quantity_raw, $decimals) as quantity,
    marts.percentage(quantity_raw, $total_supply_raw::bignum) as percentage,
    reconciliation,
    checked_block_number,
    opened_by
from paged
order by rank desc
