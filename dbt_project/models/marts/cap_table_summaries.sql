-- Joined with the tokens, because the columns in whole tokens depend on the decimals.
with

tokens as (

    select * from {{ ref('tokens') }}

),

figures as (

    select * from {{ ref('int_cap_table_figures') }}

),

described as (

    select
        tokens.tenant_id,
        tokens.subject_key,
        tokens.total_supply_raw,
        tokens.total_supply,
        tokens.total_supply_approx,
        tokens.total_supply_status as supply_status,
        tokens.holder_count,
        figures.holders_status,
        figures.unattributed_raw,
        {{ to_amount('figures.unattributed_raw', 'tokens.decimals') }} as unattributed,
        unattributed::double as unattributed_approx,
        figures.unattributed_percentage,
        figures.unattributed_percentage::double as unattributed_percentage_approx,
        figures.unattributed_status,
        figures.top10_percentage,
        figures.top10_percentage::double as top10_percentage_approx,
        figures.top10_status,
        figures.hhi,
        figures.hhi::double as hhi_approx,
        figures.hhi_status,
        figures.gini,
        figures.gini::double as gini_approx,
        figures.gini_status,
        figures.nakamoto,
        figures.nakamoto_status
    from tokens
    inner join figures on tokens.subject_key = figures.subject_key

)

select * from described
order by subject_key
