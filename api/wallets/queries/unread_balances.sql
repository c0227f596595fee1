-- Assets of a wallet without any known balance in a covered range.
select
    range_from_block,
    coalesce(token_symbol, token_address) as asset
from marts.unread_balances
where subject_key = $subject_key and tenant_id = $tenant_id
order by asset
