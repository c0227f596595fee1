{{ config(tags=['audit']) }}

-- A moved or read address without an integer key would be missing from all balances.
with

addresses as (

    select * from {{ ref('int_addresses') }}

),

named as (

    select keyed_address
    from {{ ref('int_movements_split_to_legs') }}
    union distinct
    select keyed_address
    from {{ ref('int_visible_readings') }}

)

select named.keyed_address
from named
anti join addresses on named.keyed_address = addresses.address
