select
    token_address,
    pair_key
from marts.token_pairs
where subject_key = $subject_key and tenant_id = $tenant_id
