-- Number of holders seen of each token. All holders are known where no balance existed before the covered range, and the
-- holders seen have all of a supply that a reading confirms.
with held as (

    select
        subject_key,
        sum(quantity_raw) as held_raw
    from marts.token_holders
    where
        tenant_id = $tenant_id
        and subject_key in (select unnest($subject_keys::bigint[]))
    group by subject_key

)

select
    tokens.subject_key,
    tokens.holder_count,
    case
        when
            tokens.opens_without_holders
            and tokens.total_supply_status <> 'Unconfirmed'
            and tokens.total_supply_raw = coalesce(held.held_raw, 0::bignum)
            then 'Complete'
        else 'HoldersUnknown'
    end as holders_status
from marts.tokens as tokens
left join held on tokens.subject_key = held.subject_key
where
    tokens.tenant_id = $tenant_id
    and tokens.subject_key in (select unnest($subject_keys::bigint[]))
