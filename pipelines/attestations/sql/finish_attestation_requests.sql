-- Ends running requests with a published record as succeeded.
update raw.attestation_requests as requests
set status = 'Succeeded', error = null
where
    requests.status = 'Running'
    and exists (
        select 1
        from raw.attestations as known
        where
            known.subject_key = requests.subject_key
            and known.attestation_number = requests.attestation_number
            and known.batch_id <= (select max(publications.batch_id) from raw.publications as publications)
    );
