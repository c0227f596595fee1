-- Pairs with prices to compute again, and the first effective instant. All pairs, if there was no build yet or
-- everything is rebuilt.
with

changes as (

    select * from {{ ref('stg_prices__changes') }}

),

pairs as (

    select * from {{ ref('stg_prices__pairs') }}

),

marked as (

    select
        changes.pair_key,
        coalesce(changes.from_time, '-infinity'::timestamp) as from_time
    from changes
    where changes.batch_id > {{ transformed_batch() }}

    union all

    select
        pairs.pair_key,
        '-infinity'::timestamp as from_time
    from pairs
    where {{ is_rebuilt() }} or {{ transformed_batch() }} = -1

),

changed as (

    select
        marked.pair_key,
        min(marked.from_time) as from_time
    from marked
    semi join pairs on marked.pair_key = pairs.pair_key
    group by marked.pair_key

)

select * from changed
