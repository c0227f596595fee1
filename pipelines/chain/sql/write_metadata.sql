-- Writes the results of `compare_metadata`.
delete from raw.token_metadata as known
using compared
where
    compared.is_replaced
    and known.network = compared.network
    and known.token_address = compared.token_address
    and known.tenant_id = compared.tenant_id;

delete from raw.metadata_checks as checks
using compared
where
    checks.network = compared.network
    and checks.token_address = compared.token_address
    and checks.tenant_id = compared.tenant_id;

insert into raw.token_metadata by name
select
    network,
    token_address,
    contract_status,
    standard,
    symbol,
    name,
    decimals,
    detail,
    compared_at as read_at,
    tenant_id
from compared
where is_replaced;

insert into raw.metadata_checks by name
select
    network,
    token_address,
    tenant_id,
    metadata_status,
    block_number,
    compared_at as read_at,
    confirmed_at,
    found_at,
    if(outcome = 'Contradicts', contract_status, null) as found_contract_status,
    if(outcome = 'Contradicts', standard, null) as found_standard,
    if(outcome = 'Contradicts', symbol, null) as found_symbol,
    if(outcome = 'Contradicts', name, null) as found_name,
    if(outcome = 'Contradicts', decimals, null) as found_decimals
from compared;
