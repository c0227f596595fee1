-- Holders by quantity, the largest first, or all of it backwards: those behind one, or behind so many. Ranks are 1 to n
-- without ties, so the first one of the page tells the others.
with paged as (

    select *
    from holders
    where
        $after_holder is null
        or if(
            $is_descending,
            quantity_raw > $after_quantity_raw::bignum
            or (quantity_raw = $after_quantity_raw::bignum and holder_address < $after_holder),
            quantity_raw < $after_quantity_raw::bignum
            or (quantity_raw = $after_quantity_raw::bignum and holder_address > $after_holder)
        )
    order by
        if($is_descending, quantity_raw, null),
        if($is_descending, null, quantity_raw) desc,
        if($is_descending, holder_address, null) desc,
        if($is_descending, null, holder_address)
    limit $row_count offset $skipped

)

select
    $first_rank + if($is_descending, -1, 1) * (
        row_number() over (
            order by
                if($is_descending, quantity_raw, null),
                if($is_descending, null, quantity_raw) desc,
                if($is_descending, holder_address, null) desc,
                if($is_descending, null, holder_address)
        ) - 1
    ) as rank,
    holder_address,
    quantity_raw::varchar as quantity_raw,
    marts.to_amount(quantity_raw, $decimals) as quantity,
    marts.percentage(quantity_raw, $total_supply_raw::bignum) as percentage,
    reconciliation,
    checked_block_number,
    opened_by
from paged
order by rank * if($is_descending, -1, 1)
