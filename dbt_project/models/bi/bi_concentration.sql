{{ config(alias='concentration') }}

select
    summaries.tenant_id,
    summaries.subject_key,
    tokens.token_id,
    coalesce(tokens.name, tokens.symbol) as token,
    summaries.total_supply_approx as total_supply,
    summaries.total_supply as total_supply_exact,
    summaries.supply_status,
    summaries.holder_count,
    summaries.holders_status,
    summaries.unattributed_approx as unattributed,
    summaries.unattributed as unattributed_exact,
    summaries.unattributed_percentage_approx as unattributed_percentage,
    summaries.unattributed_percentage as unattributed_percentage_exact,
    summaries.unattributed_status,
    summaries.top10_percentage_approx as top10_percentage,
    summaries.top10_percentage as top10_percentage_exact,
    summaries.top10_status,
    summaries.hhi_approx as hhi,
    summaries.hhi as hhi_exact,
    summaries.hhi_status,
    summaries.gini_approx as gini,
    summaries.gini as gini_exact,
    summaries.gini_status,
    summaries.nakamoto,
    summaries.nakamoto_status
from {{ beside(ref('cap_table_summaries')) }} as summaries
inner join {{ beside(ref('tokens')) }} as tokens on summaries.subject_key = tokens.subject_key
