-- Subjects whose current state (cap table, positions) must be written anew.
with

changed_ranges as (

    select * from {{ ref('int_changed_ranges') }}

),

touched_balances as (

    select * from {{ ref('int_touched_balances') }}

),

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

supply_observations as (

    select * from {{ ref('stg_chain__supply_observations') }}

),

newly_visible_supplies as (

    select changed_ranges.subject_key
    from changed_ranges
    inner join subjects on changed_ranges.subject_key = subjects.subject_key
    inner join supply_observations
        on
            subjects.network = supply_observations.network
            and subjects.address = supply_observations.token_address
            and supply_observations.block_number between changed_ranges.from_block and changed_ranges.to_block
    where
        changed_ranges.reason = 'Coverage'
        and subjects.kind = 'token'

),

changed as (

    select subject_key from changed_ranges
    where reason not in ('Finality', 'Coverage')
    union distinct
    select subject_key from touched_balances
    union distinct
    select subject_key from newly_visible_supplies

)

select * from changed
