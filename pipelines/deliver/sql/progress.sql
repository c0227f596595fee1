-- States of all networks, with the errors of this batch or of the slice of history that followed it.
select
    networks.network,
    case when networks.is_enabled then coalesce(states.status, 'Unknown') else 'Disabled' end as status,
    case when networks.is_enabled then states.detail else networks.disabled_reason end as detail,
    states.head_number as head,
    strftime(states.head_time, '%Y-%m-%dT%H:%M:%SZ') as head_time,
    states.final_number as final,
    (select max(to_block) from raw.coverage where coverage.network = networks.network) as collected_to,
    exists (
        select 1
        from raw.control_windows as windows
        inner join raw.control_subjects as subjects on windows.subject_key = subjects.subject_key
        left join raw.view_ranges as ranges on ranges.origin = 'Window' and windows.window_key = ranges.origin_key
        where
            subjects.network = networks.network
            and windows.closed_at is not null
            and ranges.to_block is null
    ) as has_ending_windows,
    exists (
        select 1
        from raw.control_history_requests as requests
        inner join raw.control_subjects as subjects on requests.subject_key = subjects.subject_key
        left join raw.history_requests as known on requests.operation_key = known.operation_key
        where
            subjects.network = networks.network
            and coalesce(known.status, requests.status) in ('Pending', 'Running')
            and subjects.tenant_id not in (select held.tenant_id from raw.control_held_tenants as held)
    )
    or exists (
        select 1
        from raw.control_attestation_requests as requests
        inner join raw.control_subjects as subjects on requests.subject_key = subjects.subject_key
        left join raw.attestation_requests as known on requests.operation_key = known.operation_key
        where
            subjects.network = networks.network
            and requests.status in ('Pending', 'Running')
            and coalesce(known.status, requests.status) in ('Pending', 'Running')
            and subjects.tenant_id not in (select held.tenant_id from raw.control_held_tenants as held)
    )
    or exists (
        select 1
        from raw.attestations as attestations
        where
            attestations.network = networks.network
            and attestations.attested_at is null
            and attestations.subject_key not in (
                select subjects.subject_key
                from raw.control_subjects as subjects
                inner join raw.control_held_tenants as held on subjects.tenant_id = held.tenant_id
            )
    )
    or exists (
        select 1
        from raw.changes
        inner join raw.control_subjects as subjects on changes.subject_key = subjects.subject_key
        where
            subjects.network = networks.network
            and changes.batch_id > (select coalesce(max(transforms.batch_id), -1) from raw.transforms)
    ) as has_unfinished_history,
    coalesce(states.failures_in_a_row, 0) as failures_in_a_row,
    strftime(states.probed_at, '%Y-%m-%dT%H:%M:%SZ') as tried_at,
    coalesce(states.batch_id = $batch, false) as in_last_cycle,
    (
        select min_by(failures.detail, failures.batch_id)
        from raw.collection_failures as failures
        where failures.batch_id >= $batch and failures.network = networks.network
    ) as error,
    lakes.settled_number as lake_block,
    strftime(lakes.given_at, '%Y-%m-%dT%H:%M:%SZ') as lake_given_at
from raw.networks as networks
left join raw.network_states as states on networks.network = states.network
left join raw.lake_states as lakes on networks.network = lakes.network
order by networks.network;
