with

source as (

    select * from {{ source('control', 'control_windows') }}

),

renamed as (

    select
        window_key,
        subject_key,
        opened_at,
        closed_at
    from source

)

select * from renamed
