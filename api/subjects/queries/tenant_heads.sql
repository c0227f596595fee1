select
    network,
    final_number
from marts.tenant_heads
where tenant_id = $tenant_id
