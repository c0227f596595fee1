-- New horizons of these tenants on each network: they may see all collected blocks.
insert into raw.tenant_horizons
select
    subjects.tenant_id,
    subjects.network,
    -- A cycle that failed after collecting did not update the node's newest block.
    coalesce(greatest(any_value(states.head_number), max(covered.to_block)), -1),
    any_value(states.final_number)
from raw.control_subjects as subjects
left join raw.network_states as states on subjects.network = states.network
left join raw.covered_ranges as covered on subjects.subject_key = covered.subject_key
where subjects.tenant_id in (select unnest($tenants::varchar[]))
group by subjects.tenant_id, subjects.network;
