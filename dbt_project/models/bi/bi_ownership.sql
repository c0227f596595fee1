{{ config(alias='ownership') }}

with

holders as (

    select
        holders.tenant_id,
        holders.subject_key,
        holders.rank,
        holders.quantity_raw,
        holders.holder_address,
        tokens.token_id,
        tokens.ledger_id,
        coalesce(tokens.name, tokens.symbol) as token,
        tokens.decimals,
        tokens.total_supply_raw
    from {{ beside(ref('cap_tables')) }} as holders
    inner join {{ beside(ref('tokens')) }} as tokens on holders.subject_key = tokens.subject_key

),

sliced as (

    select
        holders.*,
        {{ ownership_slice('holders.rank', 'names.name', 'shown.display_address') }} as slice,
        least(holders.rank, 11) as slice_number
    from holders
    left join {{ beside(ref('address_names')) }} as names
        on
            holders.tenant_id = names.tenant_id
            and holders.ledger_id = names.ledger_id
            and holders.holder_address = names.address
    left join {{ beside(ref('addresses')) }} as shown on holders.holder_address = shown.address

),

held as (

    select
        tenant_id,
        subject_key,
        sum(quantity_raw) as held_raw
    from holders
    group by tenant_id, subject_key

),

-- Also for tokens without a known holder.
totals as (

    select
        tokens.tenant_id,
        tokens.subject_key,
        tokens.token_id,
        coalesce(tokens.name, tokens.symbol) as token,
        tokens.decimals,
        tokens.total_supply_raw,
        coalesce(held.held_raw, 0::bignum) as held_raw
    from {{ beside(ref('tokens')) }} as tokens
    left join held on tokens.subject_key = held.subject_key

),

slices as (

    select
        tenant_id,
        subject_key,
        slice_number,
        any_value(token_id) as token_id,
        any_value(token) as token,
        any_value(slice) as slice,
        case when slice_number = 11 then 'OtherHolders' else 'Holder' end as kind,
        count(*) as holder_count,
        sum(quantity_raw) as quantity_raw,
        any_value(decimals) as decimals,
        any_value(total_supply_raw) as total_supply_raw
    from sliced
    group by tenant_id, subject_key, slice_number

    union all

    select
        tenant_id,
        subject_key,
        12 as slice_number,
        token_id,
        token,
        'Not attributed' as slice,
        'Unattributed' as kind,
        null as holder_count,
        total_supply_raw - held_raw as quantity_raw,
        decimals,
        total_supply_raw
    from totals
    where total_supply_raw > held_raw

),

measured as (

    select
        *,
        {{ to_amount('quantity_raw', 'decimals') }} as quantity_exact,
        {{ percentage('quantity_raw', 'total_supply_raw') }} as percentage_exact
    from slices

)

select
    tenant_id,
    subject_key,
    token_id,
    token,
    slice_number,
    slice,
    kind,
    holder_count,
    quantity_exact::double as quantity,
    quantity_exact,
    percentage_exact::double as percentage,
    percentage_exact
from measured
