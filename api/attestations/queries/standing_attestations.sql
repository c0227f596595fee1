-- Blocks of a subject with an attestation that is not superseded.
select distinct block_number
from marts.attestations
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and not is_superseded
order by block_number
