-- Quantities in whole tokens times prices, in their order.
with factors as (

    select
        unnest($quantities::varchar[]) as quantity,
        unnest($prices::decimal(38, 18)[]) as price

)

select
    marts.to_value(replace(quantity, '.', '')::bignum, length(split_part(quantity, '.', 2))::integer, price) as value
from factors
