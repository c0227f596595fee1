-- Contracts to read, each with the tenants that the reading is for. First readings are of contracts with an unknown kind
-- that a tenant configured, that are common on a network of its subjects, or that moved in its views. Common tokens may
-- rest in a wallet and never move. Later readings come at another block until one agrees, then at intervals, and on
-- request.
with subjects as (
    select distinct tenant_id, kind, address
    from raw.control_subjects
    where network = $network
),

decided as (
    select token_address, tenant_id
    from raw.token_metadata
    where network = $network and contract_status in ('Fungible', 'NotFungible')
),

unread as (
    select address as token_address, tenant_id from subjects
    where kind = 'token'
    union
    select tokens.token_address, subjects.tenant_id
    from raw.common_tokens as tokens
    cross join subjects
    where tokens.network = $network
    union
    select token_address, tenant_id from moved_pairs
    union
    select token_address, tenant_id from raw.lost_readings
    where network = $network and token_address != 'native'
    except
    select token_address, tenant_id from decided
),

again as (
    select decided.token_address, decided.tenant_id, checks.read_at
    from decided
    left join raw.metadata_checks as checks
        on
            checks.network = $network
            and decided.token_address = checks.token_address
            and decided.tenant_id = checks.tenant_id
    left join raw.metadata_requests as requests
        on
            requests.network = $network
            and decided.token_address = requests.token_address
            and decided.tenant_id = requests.tenant_id
    where
        decided.tenant_id in (select tenant_id from subjects)
        and coalesce(checks.block_number != $head, true)
        and (
            checks.confirmed_at is null
            or checks.read_at > $now
            or checks.read_at <= $now::timestamp - if(
                checks.metadata_status = 'Contradicted', interval 1 hour, interval 1 day
            )
            or (requests.requested_at > checks.read_at and requests.requested_at <= $now)
        )
),

pending as (
    select token_address, tenant_id from unread
    union all
    select token_address, tenant_id
    from again
    where token_address in (
        select token_address
        from again
        group by token_address
        order by min(read_at) nulls first, token_address
        limit $most
    )
)

select token_address, list(tenant_id order by tenant_id)
from pending
group by token_address
order by token_address;
