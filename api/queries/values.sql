-- Quantities in whole tokens times prices, by the marts' own function; a quantity's digits are its base units.
with given as (

    select
        unnest($quantities::varchar[]) as quantity,
        unnest($prices::varchar[]) as price,
        generate_subscripts($quantities::varchar[], 1) as place

)

select
    marts.to_value(
        replace(quantity, '.', '')::bignum, length(split_part(quantity, '.', 2))::integer, price::decimal(38, 18)
    ) as value
from given
order by place
