-- Subjects whose current state (cap table, positions) must be written anew.
with

changed_ranges as (

    select * from {{ ref('int_changed_ranges') }}

),

touched_balances as (

    select * from {{ ref('int_touched_balances') }}

),

changed as (

    select subject_key from changed_ranges
    where reason not in ('Finality', 'Extended')
    union distinct
    select subject_key from touched_balances

)

select * from changed
