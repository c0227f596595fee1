-- Presence of symbols in market lists. A list counts as collected only if a pair of the tenant uses its source.
with asked as (
    select
        unnest($source_ids) as source_id,
        unnest($symbols) as symbol
),

lists as (
    select source_id
    from marts.price_market_lists
    where
        collected_at is not null
        and source_id in (
            select source_id
            from marts.price_routes
            where tenant_id = $tenant_id
        )
)

select
    asked.source_id,
    asked.symbol,
    lists.source_id is not null as is_collected,
    exists(
        from marts.price_markets as markets
        where
            markets.source_id = asked.source_id
            and markets.is_active
            and asked.symbol in (markets.base, markets.quote, markets.base_code, markets.quote_code)
    ) as is_listed
from asked
left join lists on asked.source_id = lists.source_id
