select
    source_id,
    polled_at,
    poll_error
from marts.price_sources
where tenant_id = $tenant_id and polled_at is not null
