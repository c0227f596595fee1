-- The consequence of each reading in `incoming`: `outcome` decides, and the other columns are the rows to write.
create or replace temp table compared as
with read as (
    select
        incoming.*,
        known.token_address is not null as is_known,
        coalesce(known.contract_status in ('Fungible', 'NotFungible'), false) as is_decided,
        checks.metadata_status as status_before,
        checks.confirmed_at,
        checks.found_at,
        -- The values that amounts and names are shown with. `detail` explains them, and is not compared.
        row(
            incoming.contract_status, incoming.standard, incoming.symbol, incoming.name, incoming.decimals
        ) is not distinct from row(
            known.contract_status, known.standard, known.symbol, known.name, known.decimals
        ) as is_same,
        coalesce(checks.metadata_status = 'Contradicted', false)
        and row(
            incoming.contract_status, incoming.standard, incoming.symbol, incoming.name, incoming.decimals
        ) is not distinct from row(
            checks.found_contract_status,
            checks.found_standard,
            checks.found_symbol,
            checks.found_name,
            checks.found_decimals
        ) as is_found_again,
        coalesce(requests.accepted_at between checks.found_at and $now, false) as is_accepted
    from incoming
    left join raw.token_metadata as known
        on
            known.network = $network
            and incoming.token_address = known.token_address
            and incoming.tenant_id = known.tenant_id
    left join raw.metadata_checks as checks
        on
            checks.network = $network
            and incoming.token_address = checks.token_address
            and incoming.tenant_id = checks.tenant_id
    left join raw.metadata_requests as requests
        on
            requests.network = $network
            and incoming.token_address = requests.token_address
            and incoming.tenant_id = requests.tenant_id
),

decided as (
    select
        *,
        case
            when not is_decided then 'First'
            when is_same then 'Agrees'
            when is_found_again and (confirmed_at is null or is_accepted) then 'Replaces'
            else 'Contradicts'
        end as outcome
    from read
)

select
    * exclude (found_at, confirmed_at),
    $network as network,
    $block_number as block_number,
    $now::timestamp as compared_at,
    outcome in ('First', 'Replaces') as is_replaced,
    not (is_known and is_same) as is_changed,
    case outcome
        when 'First' then 'Unconfirmed'
        when 'Contradicts' then 'Contradicted'
        else 'Confirmed'
    end as metadata_status,
    metadata_status is distinct from status_before or (outcome = 'Contradicts' and not is_found_again)
        as is_status_changed,
    case
        when outcome in ('Agrees', 'Replaces') then compared_at
        when outcome = 'Contradicts' then confirmed_at
    end as confirmed_at,
    case when outcome = 'Contradicts' then if(is_found_again, least(found_at, compared_at), compared_at) end as found_at
from decided;
