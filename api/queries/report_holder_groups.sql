-- Holders in groups of neighbouring ranks, wider and wider, by reconciliation. Where a group ends, its last rank says.
select
    reconciliation,
    floor(ln(rank) * $groups_per_log)::integer as place,
    count(*) as holder_count,
    max(rank) as last_rank,
    sum(quantity_raw)::varchar as quantity_raw
from marts.cap_tables
where subject_key = $subject_key and tenant_id = $tenant_id
group by reconciliation, place
order by place
