{{ config(materialized='view', contract={'enforced': false}) }}

-- A view must find its tables in any copy of the file, so it names them without the database.
-- depends_on: {{ ref('token_value_days') }}, {{ ref('token_supplies') }}
with

-- A union of days and blocks, with tenant and token as partitions: a join would read the supplies of all tokens.
ordered as (

    select
        days.*,
        days.day + 1 as at_time,
        null as block_number,
        null as status_in_force
    from marts.token_value_days as days
    union all by name
    select
        supplies.tenant_id,
        supplies.subject_key,
        supplies.range_from_block,
        supplies.block_time as at_time,
        supplies.block_number,
        supplies.supply_status_after as status_in_force
    from marts.token_supplies as supplies

),

carried as (

    select
        *,
        coalesce(last_value(status_in_force ignore nulls) over until_end, 'Unknown') as supply_status
    from ordered
    window until_end as (
        partition by tenant_id, subject_key, range_from_block
        order by at_time asc, day asc nulls last, block_number asc
        rows unbounded preceding
    )

)

select
    tenant_id,
    subject_key,
    range_from_block,
    day,
    pair_key,
    supply_raw,
    supply,
    supply_approx,
    supply_status,
    price,
    price_text,
    price_status,
    price_effective_from,
    source_id,
    is_fallback,
    value,
    value_approx,
    case
        when value_status = 'Priced' and supply_status = 'Unconfirmed' then 'Unconfirmed'
        else value_status
    end as value_status
from carried
where day is not null
