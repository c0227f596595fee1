-- Ends running requests as succeeded if all their blocks are covered by batches that are in the marts.
update raw.history_requests as requests
set status = 'Succeeded', error = null
where
    requests.status = 'Running'
    and requests.subject_key not in (
        select subjects.subject_key
        from raw.control_subjects as subjects
        inner join raw.control_held_tenants as held on subjects.tenant_id = held.tenant_id
    )
    and exists (
        select 1 from raw.covered_ranges as covered
        where
            covered.subject_key = requests.subject_key
            and not covered.is_native
            and covered.from_block <= requests.from_block
            and covered.to_block >= requests.to_block
    )
    and not exists (
        select 1 from raw.changes
        where
            changes.subject_key = requests.subject_key
            and changes.batch_id > (select coalesce(max(batch_id), -1) from raw.publications)
            and changes.from_block <= requests.to_block
            and coalesce(changes.to_block, requests.to_block) >= requests.from_block
    );
