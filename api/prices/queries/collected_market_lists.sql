-- Sources with a collected market list, if a pair of the tenant uses them. Lists collected only for others stay hidden.
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
