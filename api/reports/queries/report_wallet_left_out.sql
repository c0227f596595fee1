-- Movements in and out of a wallet without a value, by asset and reason, the most frequent first. `priced_from` is the
-- time of the pair's first price; it is null unless all of the movements are older.
with activities as (

    {% include '_valued_movements.sql' %}

),

first_prices as (

    select
        pair_key,
        min(valid_from) as priced_from
    from marts.system_prices
    where tenant_id = $tenant_id and price_text is not null
    group by pair_key

)

select
    activities.token_address,
    any_value(activities.token_symbol) as token_symbol,
    any_value(activities.token_id) as token_id,
    activities.value_status,
    count(*) as activity_count,
    case when max(activities.block_time) < min(first_prices.priced_from) then min(first_prices.priced_from) end
        as priced_from
from activities
left join first_prices on activities.pair_key = first_prices.pair_key
where activities.direction is not null and activities.has_moved and activities.value is null
group by activities.token_address, activities.value_status
order by activity_count desc, activities.token_address, activities.value_status
