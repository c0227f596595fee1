-- Unfinished attestations to delete: without a request or a period, of blocks no longer in the chain, and of deleted
-- subjects. Requests for a block no longer in the chain are resolved again.
create or replace temp table unwanted as
select known.subject_key, known.attestation_number
from raw.attestations as known
left join raw.blocks as blocks
    on known.network = blocks.network and known.block_number = blocks.block_number
where
    known.network = $network
    and known.attested_at is null
    and (
        blocks.block_hash is distinct from known.block_hash
        or known.subject_key not in (select subject_key from raw.control_subjects)
        or (
            known.period_end is null
            and not exists (
                select 1
                from raw.attestation_requests as requests
                where
                    requests.subject_key = known.subject_key
                    and requests.attestation_number = known.attestation_number
                    and requests.status = 'Running'
            )
        )
    );
