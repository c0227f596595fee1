select
    symbol,
    name,
    detail,
    read_at,
    checked_at,
    confirmed_at,
    found_at,
    found_contract_status,
    found_standard,
    found_symbol,
    found_name,
    found_decimals
from marts.token_metadata
where tenant_id = $tenant_id and network = $network and token_address = $token_address
