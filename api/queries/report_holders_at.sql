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
where rowid in (select unnest($places::bigint[]))
order by rank
