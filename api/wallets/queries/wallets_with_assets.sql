-- The wallets that ever held one of the assets in a covered range.
select distinct subject_key
from marts.balance_changes
where
    subject_key = any($subject_keys)
    and tenant_id = $tenant_id
    and token_address = any($token_addresses)
