-- Of some sources those whose market list was collected while a pair of the tenant's named them: to others it is not there.
select lists.source_id
from marts.price_market_lists as lists
where
    lists.source_id = any($source_ids)
    and lists.collected_at is not null
    and lists.source_id in (
        select routes.source_id
        from marts.price_routes as routes
        where routes.tenant_id = $tenant_id
    )
