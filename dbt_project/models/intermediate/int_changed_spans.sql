-- Where on each network rows must be read anew: the three newest stretches, and what spans all before them. Few,
-- because each is a scan of its own.
with

changed_ranges as (

    select * from {{ ref('int_changed_ranges') }}
    where reason != 'Observation'

),

marked as (

    select
        *,
        from_block - 1 > coalesce(
            max(to_block) over (
                partition by network
                order by from_block, to_block
                rows between unbounded preceding and 1 preceding
            ),
            -3
        ) as is_first
    from changed_ranges

),

numbered as (

    select
        *,
        count_if(is_first) over (partition by network) - count_if(is_first) over (
            partition by network
            order by from_block, to_block
            rows unbounded preceding
        ) as newer_spans
    from marked

),

spans as (

    select
        network,
        min(from_block) as from_block,
        max(to_block) as to_block
    from numbered
    group by network, least(newer_spans, 3)

)

select * from spans
