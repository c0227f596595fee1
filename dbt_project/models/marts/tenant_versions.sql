with

versions as (

    select * from {{ ref('stg_pipeline__tenant_versions') }}

)

select
    tenant_id,
    data_version,
    raised_at,
    after_version
from versions
order by tenant_id, data_version
