{{ config(materialized='view', contract={'enforced': false}) }}

-- Readers filter by tenant and token. They are the partitions, so that other tokens are not ranked.
with

ranked as (

    select
        *,
        row_number() over (
            partition by tenant_id, subject_key
            order by quantity_raw desc, holder_address asc
        ) as rank
    from {{ beside(ref('token_holders')) }}

),

described as (

    select
        ranked.tenant_id,
        ranked.subject_key,
        ranked.rank,
        ranked.holder_address,
        ranked.quantity_raw,
        {{ to_amount('ranked.quantity_raw', 'tokens.decimals') }} as quantity,
        {{ percentage('ranked.quantity_raw', 'tokens.total_supply_raw') }} as percentage,
        case when tokens.total_supply_raw = 0::bignum then 'ZeroSupply' else tokens.total_supply_status end
            as percentage_status,
        ranked.reconciliation,
        ranked.checked_block_number,
        ranked.opened_by
    from ranked
    left join {{ beside(ref('tokens')) }} as tokens on ranked.subject_key = tokens.subject_key

)

select
    tenant_id,
    subject_key,
    rank,
    holder_address,
    quantity_raw,
    quantity,
    quantity::double as quantity_approx,
    percentage,
    percentage::double as percentage_approx,
    percentage_status,
    reconciliation,
    checked_block_number,
    opened_by
from described
