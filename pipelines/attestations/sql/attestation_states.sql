-- States of the attestations that the control store holds as unfinished.
select
    requests.operation_key,
    coalesce(asked.status, 'Pending'),
    asked.block_number,
    asked.attestation_number,
    asked.error,
    coalesce(known.read_count, 0),
    known.owed_count,
    subjects.network
from raw.control_attestation_requests as requests
inner join raw.control_subjects as subjects on requests.subject_key = subjects.subject_key
left join raw.attestation_requests as asked on requests.operation_key = asked.operation_key
left join raw.attestations as known
    on asked.subject_key = known.subject_key and asked.attestation_number = known.attestation_number
where requests.status in ('Pending', 'Running')
order by requests.operation_key;
