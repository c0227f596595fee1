-- Only past ranges: at the head a range has one or two blocks, and costs one request for each.
with

requests_spent as (

    select * from {{ ref('stg_pipeline__requests_spent') }}

),

summed as (

    select
        network,
        work,
        sum(unit_count) as unit_count,
        sum(request_count) as request_count,
        sum(answer_bytes) as answer_bytes,
        sum(milliseconds) as milliseconds
    from requests_spent
    where
        purpose in ('History', 'Attestation')
        and work != 'other'
    group by
        network,
        work

),

paces as (

    select
        network,
        work,
        ((request_count * 1000000 + unit_count - 1) // unit_count)::bigint as requests_per_million,
        ((answer_bytes * 1000000 + unit_count - 1) // unit_count)::bigint as answer_bytes_per_million,
        ((milliseconds * 1000000 + unit_count - 1) // unit_count)::bigint as milliseconds_per_million
    from summed
    where unit_count > 0

)

select
    network,
    work,
    requests_per_million,
    answer_bytes_per_million,
    milliseconds_per_million
from paces
order by
    network,
    work
