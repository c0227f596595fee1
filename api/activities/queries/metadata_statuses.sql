select
    token_address,
    metadata_status
from marts.token_metadata
where tenant_id = $tenant_id and network = $network and token_address = any($token_addresses)
