{{ config(alias='token_holder_days') }}

select
    days.tenant_id,
    days.subject_key,
    tokens.token_id,
    coalesce(tokens.name, tokens.symbol) as token,
    days.day,
    days.holder_count,
    days.holder_change,
    days.opens_without_holders
from {{ beside(ref('token_holder_days')) }} as days
inner join {{ beside(ref('tokens')) }} as tokens on days.subject_key = tokens.subject_key
