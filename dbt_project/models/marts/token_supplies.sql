{{ config(materialized='view', contract={'enforced': false}) }}

-- A view must find its tables in any copy of the file, so it names them without the database.
-- depends_on: {{ ref('supply_changes') }}, {{ ref('tokens') }}
with

changes as (

    select
        changes.*,
        tokens.behaviour
    from {{ beside(ref('supply_changes')) }} as changes
    inner join {{ beside(ref('tokens')) }} as tokens on changes.subject_key = tokens.subject_key

),

-- Later readings confirm earlier blocks, so these columns are not stored. Readers filter by tenant and token, which are
-- the partitions.
surrounded as (

    select
        *,
        max(case when is_moved then block_number end) over until_row as moved_block,
        max(case when is_checked then block_number end) over until_row as checked_block,
        min(case when is_moved or is_adjusted then block_number end) over after_row as next_changed_block,
        min(case when is_checked then block_number end) over after_row as next_checked_block,
        min(case when is_adjusted then block_number end) over after_row as next_adjusted_block
    from changes
    window
        until_row as (
            partition by tenant_id, subject_key, range_from_block
            order by block_number
            rows unbounded preceding
        ),
        after_row as (
            partition by tenant_id, subject_key, range_from_block
            order by block_number desc
            rows between unbounded preceding and 1 preceding
        )

)

select
    tenant_id,
    subject_key,
    range_from_block,
    block_number,
    block_time,
    total_supply_raw,
    total_supply,
    total_supply_approx,
    opened_by,
    {{ supply_status('total_supply_raw', confirming_block_around('block_number')) }} as supply_status,
    {{ supply_status('total_supply_raw', confirming_block_around('block_number + 1')) }} as supply_status_after
from surrounded
