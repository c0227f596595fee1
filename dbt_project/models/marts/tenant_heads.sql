with

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

heads as (

    select * from {{ ref('stg_pipeline__visible_heads') }}

)

select distinct
    subjects.tenant_id,
    subjects.network,
    heads.head_number,
    heads.final_number
from subjects
inner join heads on subjects.subject_key = heads.subject_key
where heads.head_number is not null
order by subjects.tenant_id, subjects.network
