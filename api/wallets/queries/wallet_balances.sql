select
    token_address,
    token_id,
    token_symbol,
    quantity_raw::varchar as quantity_raw,
    quantity,
    reconciliation,
    checked_block_number,
    opened_by,
    unread_reason
from marts.wallet_balances
where subject_key = $subject_key and tenant_id = $tenant_id
order by token_address
