-- A contract read by an older release has no check: it counts as read once.
with

token_metadata as (

    select * from {{ ref('stg_chain__token_metadata') }}

),

checks as (

    select * from {{ ref('stg_chain__metadata_checks') }}

)

select
    token_metadata.tenant_id,
    token_metadata.network,
    token_metadata.token_address,
    token_metadata.contract_status,
    token_metadata.standard,
    token_metadata.symbol,
    token_metadata.name,
    token_metadata.decimals,
    token_metadata.detail,
    token_metadata.read_at,
    coalesce(checks.metadata_status, 'Unconfirmed') as metadata_status,
    coalesce(checks.read_at, token_metadata.read_at) as checked_at,
    checks.block_number as checked_block_number,
    checks.confirmed_at,
    checks.found_at,
    checks.found_contract_status,
    checks.found_standard,
    checks.found_symbol,
    checks.found_name,
    checks.found_decimals
from token_metadata
left join checks
    on
        token_metadata.tenant_id = checks.tenant_id
        and token_metadata.network = checks.network
        and token_metadata.token_address = checks.token_address
order by token_metadata.tenant_id, token_metadata.network, token_metadata.token_address
