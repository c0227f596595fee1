with asked as (
    select
        unnest($source_ids) as source_id,
        unnest($symbols) as symbol
)

select
    asked.source_id,
    asked.symbol,
    lists.collected_at is not null as is_collected,
    exists(
        from marts.price_markets as markets
        where
            markets.source_id = asked.source_id
            and markets.is_active
            and asked.symbol in (markets.base, markets.quote, markets.base_code, markets.quote_code)
    ) as is_listed
from asked
left join marts.price_market_lists as lists on asked.source_id = lists.source_id
