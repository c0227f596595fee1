{{ config(tags=['audit']) }}

-- A wallet's total is the sum of the values of its positions, to the last digit. In integers of 10^-18.
with

positions as (

    select
        subject_key,
        sum({{ value_to_units('value') }}) filter (where value_status = 'Priced') as total_units
    from {{ ref('wallet_balance_values') }}
    group by subject_key

),

totals as (

    select * from {{ ref('wallet_totals') }}
    where total_value_status = 'Priced'

),

compared as (

    select
        totals.subject_key,
        {{ value_to_units('totals.total_value') }} as total_units,
        coalesce(positions.total_units, 0::bignum) as position_units
    from totals
    left join positions on totals.subject_key = positions.subject_key

)

select * from compared
where total_units != position_units
