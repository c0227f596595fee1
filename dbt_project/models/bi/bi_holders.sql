{{ config(alias='holders') }}

select
    holders.tenant_id,
    holders.subject_key,
    tokens.token_id,
    coalesce(tokens.name, tokens.symbol) as token,
    holders.rank,
    coalesce(names.name, shown.display_address, holders.holder_address) as holder,
    names.name as holder_name,
    coalesce(shown.display_address, holders.holder_address) as holder_address,
    holders.quantity_approx as quantity,
    holders.quantity as quantity_exact,
    holders.percentage_approx as percentage,
    holders.percentage as percentage_exact,
    holders.value_approx as value,
    holders.value as value_exact,
    holders.value_status,
    holders.currency,
    holders.reconciliation,
    holders.checked_block_number,
    {{ ownership_slice('holders.rank', 'names.name', 'shown.display_address') }} as slice
from {{ beside(ref('cap_table_values')) }} as holders
inner join {{ beside(ref('tokens')) }} as tokens on holders.subject_key = tokens.subject_key
left join {{ beside(ref('address_names')) }} as names
    on
        tokens.tenant_id = names.tenant_id
        and tokens.ledger_id = names.ledger_id
        and holders.holder_address = names.address
left join {{ beside(ref('addresses')) }} as shown on holders.holder_address = shown.address
