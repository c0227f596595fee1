with

data_files as (

    select * from {{ ref('stg_pipeline__data_files') }}

)

select
    network,
    data_set,
    file,
    byte_count,
    day,
    from_block,
    to_block,
    status,
    detail,
    row_count,
    duplicate_count,
    listed_at
from data_files
order by network, data_set, file
