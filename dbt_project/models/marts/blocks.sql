{{
    config(
        materialized='appended_table',
        pre_hook=["{{ delete_orphaned_blocks() }}"],
    )
}}

-- depends_on: {{ ref('stg_pipeline__transforms') }}
with

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

added as (

    select
        blocks.network,
        blocks.block_number,
        blocks.block_hash,
        blocks.block_time,
        blocks.is_tail
    from blocks
    {% if is_appended() %}
    anti join {{ this }} as known
        on
            blocks.network = known.network
            and blocks.block_number = known.block_number
    where blocks.batch_id > {{ transformed_batch() }}
    {% endif %}

)

select
    network,
    block_number,
    block_hash,
    block_time,
    is_tail
from added
