{{ config(materialized='view', contract={'enforced': false}) }}

-- A view must find its tables in any copy of the file, so it names them without the database.
-- depends_on: {{ ref('wallet_positions') }}, {{ ref('wallets') }}, {{ ref('wallet_behaviours') }}
-- depends_on: {{ ref('unread_balances') }}
with

confirmed as (

    select
        positions.*,
        {{ confirming_block(
            'behaviours.behaviour',
            'wallets.as_of_block_number',
            'positions.moved_block_number',
            'positions.checked_block_number'
        ) }} as confirming_block
    from marts.wallet_positions as positions
    inner join marts.wallets as wallets on positions.subject_key = wallets.subject_key
    left join marts.wallet_behaviours as behaviours
        on
            positions.subject_key = behaviours.subject_key
            and positions.token_address = behaviours.token_address

)

select
    tenant_id,
    subject_key,
    token_address,
    token_id,
    token_symbol,
    token_decimals,
    quantity_raw,
    quantity,
    quantity_approx,
    {{ reconciliation('confirming_block', 'is_adjusted') }} as reconciliation,
    checked_block_number,
    opened_by,
    null::varchar as unread_reason
from confirmed

union all by name

select
    tenant_id,
    subject_key,
    token_address,
    token_id,
    token_symbol,
    token_decimals,
    'Unchecked' as reconciliation,
    reason as unread_reason
from marts.unread_balances
