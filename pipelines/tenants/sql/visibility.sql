-- Data that each tenant may see: these views restrict ranges, and the column `visible_to` restricts readings. All
-- results for a tenant are computed from them.
drop view if exists raw.shown_heads;
drop view if exists raw.shown_ranges;

-- The newest block of its network that each subject's tenant may see. Before its first build, a tenant may see all
-- stored blocks.
create or replace view raw.visible_heads as
select
    subjects.subject_key,
    case when horizons.tenant_id is null then states.head_number else nullif(horizons.head_number, -1) end as head_number,
    case when horizons.tenant_id is null then states.final_number else horizons.final_number end as final_number
from raw.control_subjects as subjects
left join raw.network_states as states on subjects.network = states.network
left join raw.tenant_horizons as horizons
    on
        subjects.tenant_id = horizons.tenant_id
        and subjects.network = horizons.network;

-- The collected parts of each subject's view that its tenant may see.
create or replace view raw.visible_ranges as
select
    covered.subject_key,
    covered.is_native,
    covered.from_block,
    case
        when horizons.tenant_id is null then covered.to_block
        else least(covered.to_block, horizons.head_number)
    end as to_block
from raw.covered_ranges as covered
inner join raw.control_subjects as subjects on covered.subject_key = subjects.subject_key
left join raw.tenant_horizons as horizons
    on
        subjects.tenant_id = horizons.tenant_id
        and subjects.network = horizons.network
where horizons.tenant_id is null or covered.from_block <= horizons.head_number;
