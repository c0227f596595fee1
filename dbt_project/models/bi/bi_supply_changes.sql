{{ config(alias='supply_changes') }}

select
    changes.tenant_id,
    changes.subject_key,
    tokens.token_id,
    coalesce(tokens.name, tokens.symbol) as token,
    changes.range_from_block,
    changes.block_number,
    changes.block_time,
    changes.total_supply_approx as total_supply,
    changes.total_supply as total_supply_exact,
    changes.is_observed
from {{ beside(ref('supply_changes')) }} as changes
inner join {{ beside(ref('tokens')) }} as tokens on changes.subject_key = tokens.subject_key
