-- Number of known holders of each token, and whether all holders are known.
select
    subject_key,
    holder_count,
    holders_status
from marts.cap_table_summaries
where
    tenant_id = $tenant_id
    and subject_key in (select unnest($subject_keys::bigint[]))
