{{ config(alias='balance_changes') }}

with

subjects as (

    select
        subject_key,
        tenant_id,
        ledger_id,
        token_id as subject_id,
        'Token' as tracked_as
    from {{ beside(ref('tokens')) }}

    union all

    select
        subject_key,
        tenant_id,
        ledger_id,
        wallet_id as subject_id,
        'Wallet' as tracked_as
    from {{ beside(ref('wallets')) }}

)

select
    changes.tenant_id,
    changes.subject_key,
    subjects.subject_id,
    subjects.tracked_as,
    changes.range_from_block,
    coalesce(changes.token_symbol, shown_tokens.display_address, changes.token_address) as token,
    coalesce(shown_tokens.display_address, changes.token_address) as token_address,
    coalesce(names.name, names.shown_as, shown.display_address, changes.holder_address) as holder,
    coalesce(names.shown_as, shown.display_address, changes.holder_address) as holder_address,
    changes.block_number,
    changes.block_time,
    {{ to_amount('changes.movement_raw', 'changes.token_decimals') }} as movement_exact,
    movement_exact::double as movement,
    changes.balance::double as balance,
    changes.balance as balance_exact,
    changes.is_observed,
    changes.is_checked,
    changes.is_adjusted
from {{ beside(ref('balance_changes')) }} as changes
inner join subjects on changes.subject_key = subjects.subject_key
left join {{ beside(ref('address_names')) }} as names
    on
        subjects.tenant_id = names.tenant_id
        and subjects.ledger_id = names.ledger_id
        and changes.holder_address = names.address
left join {{ beside(ref('addresses')) }} as shown_tokens on changes.token_address = shown_tokens.address
left join {{ beside(ref('addresses')) }} as shown on changes.holder_address = shown.address
