-- Balances at the block of an attestation in the last build of the models. Each has the reading that confirms it, and a
-- flag for readings at the block since then. Computed once for the queries of the attestation.
create or replace temp table attested_balances as
select
    balances.token_address,
    balances.holder_address,
    balances.range_from_block,
    balances.balance_raw,
    balances.is_derived,
    balances.confirming_block,
    observations.visible_to[$tenant] is not null as is_read
from requests.requests__attestations as balances
left join raw.balance_observations as observations
    on observations.block_number = $block
    and observations.network = (select network from raw.control_subjects where subject_key = $subject)
    and balances.token_address = observations.token_address
    and balances.holder_address = observations.holder_address
where
    balances.subject_key = $subject
    and balances.attestation_number = $number
    and balances.holder_address != 'supply';
