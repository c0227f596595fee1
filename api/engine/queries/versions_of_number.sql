-- Range of earlier published versions that have a tenant's data version.
with numbered as (

    select
        data_version,
        after_version,
        lead(after_version) over (order by data_version) as last_version
    from marts.tenant_versions
    where tenant_id = $tenant_id

)

select
    after_version,
    last_version
from numbered
where data_version = $data_version and last_version is not null
