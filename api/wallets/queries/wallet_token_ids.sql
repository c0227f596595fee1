-- The tenant's own tokens among the assets that a wallet holds or ever moved.
select
    token_address,
    token_id
from marts.wallet_balances
where subject_key = $subject_key and tenant_id = $tenant_id and token_id is not null

union

select
    token_address,
    token_id
from marts.wallet_activities
where subject_key = $subject_key and tenant_id = $tenant_id and token_id is not null
