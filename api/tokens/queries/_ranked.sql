select
    row_number() over () as rank,
    holder_address,
    quantity_raw::varchar as quantity_raw,
    reconciliation,
    checked_block_number,
    opened_by
from (select * from held order by quantity_raw desc, holder_address)
