select
    as_of_block_number,
    as_of_block_hash,
    as_of_block_time,
    as_of_finality
from marts.wallets
where subject_key = $subject_key and tenant_id = $tenant_id
