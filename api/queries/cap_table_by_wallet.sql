with holders as (

    select
        rank,
        holder_address,
        quantity_raw,
        quantity,
        percentage,
        reconciliation,
        checked_block_number,
        opened_by,
        $direction * row_number() over (order by holder_address) as position
    from marts.cap_tables
    where subject_key = $subject_key and tenant_id = $tenant_id

)

select
    position,
    rank,
    holder_address,
    quantity_raw::varchar as quantity_raw,
    quantity,
    percentage,
    reconciliation,
    checked_block_number,
    opened_by
from holders
where position > $after_position
order by position
limit $row_count
