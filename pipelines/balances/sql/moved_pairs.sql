-- New pairs of token and holder that moved inside a view, or that a search found, by subject and its tenant.
create or replace temp table moved_pairs as
with parties as (
    select subject_kind, address, asset, holder_address, block_number, false as is_again
    from raw.movement_parties
    where network = $network and asset != 'native' and block_number >= $from_block
    union all
    select subject_kind, address, asset, holder_address, block_number, true as is_again
    from raw.movement_parties
    where network = $network and asset != 'native' and batch_id > $batch
)

select distinct ranges.subject_key, ranges.tenant_id, parties.asset as token_address, parties.holder_address
from parties
inner join network_ranges as ranges
    on parties.subject_kind = ranges.kind and parties.address = ranges.address
    and parties.block_number between ranges.from_block and ranges.to_block
    and (parties.is_again or ranges.has_new or parties.block_number > ranges.opened_to_block)
union
select found.subject_key, ranges.tenant_id, ranges.address, found.holder_address
from raw.found_holders as found
inner join network_ranges as ranges on found.subject_key = ranges.subject_key
-- The search ran after the other readings of its cycle.
where found.batch_id >= $batch or ranges.has_new;
