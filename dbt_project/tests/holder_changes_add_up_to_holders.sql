{{ config(tags=['audit']) }}

-- Holder changes in the range with the newest block add up to the holders in the cap table.
with

views as (

    select * from {{ ref('int_covered_ranges') }}
    where
        kind = 'token'
        and is_as_of

),

changes as (

    select
        views.subject_key,
        coalesce(sum(changes.holder_change), 0) as holder_count
    from views
    left join {{ ref('balance_changes') }} as changes
        on
            views.subject_key = changes.subject_key
            and views.from_block = changes.range_from_block
    group by views.subject_key

),

holders as (

    select
        subject_key,
        count(*) as holder_count
    from {{ ref('cap_tables') }}
    group by subject_key

),

compared as (

    select
        changes.subject_key,
        changes.holder_count,
        coalesce(holders.holder_count, 0) as cap_table_holder_count
    from changes
    left join holders on changes.subject_key = holders.subject_key

)

select * from compared
where holder_count != cap_table_holder_count
