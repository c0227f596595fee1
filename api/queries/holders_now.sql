-- The holders of a token at its newest covered block: what other queries read as `holders`.
select
    holder_address,
    quantity_raw,
    reconciliation,
    checked_block_number,
    opened_by
from marts.token_holders
where subject_key = $subject_key and tenant_id = $tenant_id
