{{ config(materialized='view', contract={'enforced': false}) }}

-- A view must find its tables in any copy of the file, so it names them without the database.
-- depends_on: {{ ref('token_positions') }}, {{ ref('tokens') }}
with

confirmed as (

    select
        positions.*,
        {{ to_amount('positions.quantity_raw', 'tokens.decimals') }} as quantity,
        {{ confirming_block(
            'tokens.behaviour',
            'tokens.as_of_block_number',
            'positions.moved_block_number',
            'positions.checked_block_number'
        ) }} as confirming_block
    from marts.token_positions as positions
    inner join marts.tokens as tokens on positions.subject_key = tokens.subject_key

)

select
    tenant_id,
    subject_key,
    holder_address,
    quantity_raw,
    quantity::double as quantity_approx,
    {{ reconciliation('confirming_block', 'is_adjusted') }} as reconciliation,
    checked_block_number,
    opened_by
from confirmed
