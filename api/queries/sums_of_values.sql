-- Sums of values, each of at most 18 decimals, by place.
with given as (

    select
        unnest($places::bigint[]) as place,
        unnest($amounts::varchar[]) as amount

)

select
    place,
    marts.to_amount(
        sum((split_part(amount, '.', 1) || rpad(split_part(amount, '.', 2), 18, '0'))::bignum), 18
    ) as value
from given
group by place
order by place
