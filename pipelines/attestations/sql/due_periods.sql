-- Ends of periods that are due for an attestation, newest first, with the block where it is known. The period is in a
-- covered range of the models, and its subject is tracked and does not have too many holders. If the token was created
-- in the range, its first period counts from the beginning. Ends after the newest final block wait.
with superseded as (
    select subject_key, attestation_number
    from intermediate.int_attestations
    where superseded_by is not null
),

-- DuckDB cannot plan this as a correlated anti join.
standing as (
    select distinct attested.subject_key, attested.block_number
    from raw.attestations as attested
    anti join superseded
        on
            attested.subject_key = superseded.subject_key
            and attested.attestation_number = superseded.attestation_number
),

times as (
    select max(block_time) as final_time
    from raw.blocks
    where network = $network and block_number <= $final
),

tracked as (
    select subjects.subject_key, subjects.tenant_id, subjects.address
    from raw.control_subjects as subjects
    where
        subjects.network = $network
        and subjects.tenant_id not in (select tenant_id from raw.control_held_tenants)
        and exists (
            select 1 from raw.control_windows as windows
            where windows.subject_key = subjects.subject_key and windows.closed_at is null
        )
        and not exists (
            select 1 from raw.token_metadata as metadata
            where
                metadata.tenant_id = subjects.tenant_id
                and metadata.network = $network
                and metadata.token_address = subjects.address
                and metadata.contract_status != 'Fungible'
        )
),

ranges as (
    select
        tracked.subject_key,
        covered.from_block,
        covered.to_block,
        date_trunc($period, firsts.block_time) + case
            when
                firsts.block_time = date_trunc($period, firsts.block_time)
                or covered.from_block <= 1
                or creations.block_number >= covered.from_block
                then interval 0 day
            else $length::interval
        end as first_period,
        least(lasts.block_time, times.final_time) as until
    from tracked
    inner join intermediate.int_views_transformed as covered
        on tracked.subject_key = covered.subject_key and not covered.is_native
    inner join raw.blocks as firsts on firsts.network = $network and covered.from_block = firsts.block_number
    inner join raw.blocks as lasts on lasts.network = $network and covered.to_block = lasts.block_number
    left join raw.token_creations as creations
        on
            creations.network = $network
            and tracked.address = creations.token_address
            and tracked.tenant_id = creations.tenant_id
    cross join times
),

ends as (
    select
        subject_key,
        from_block,
        to_block,
        unnest(generate_series(first_period + $length::interval, until, $length::interval)) as period_end
    from ranges
    where first_period + $length::interval <= until
),

due as (
    select
        ends.subject_key,
        ends.period_end,
        known.block_number
    from ends
    left join raw.period_ends as known on known.network = $network and ends.period_end = known.period_end
    left join standing on ends.subject_key = standing.subject_key and known.block_number = standing.block_number
    where
        known.block_number is null
        or (known.block_number between ends.from_block and ends.to_block and standing.block_number is null)
),

-- Counted only for subjects with due ends, because every cycle runs this query.
crowded as (
    select latest.subject_key
    from intermediate.int_balances_latest as latest
    semi join due on latest.subject_key = due.subject_key
    group by latest.subject_key
    having count(*) > $most_holders
)

select
    due.subject_key,
    due.period_end,
    due.block_number
from due
anti join crowded on due.subject_key = crowded.subject_key
order by due.period_end desc, due.subject_key
limit $most;
